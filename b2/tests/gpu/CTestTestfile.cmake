# CMake generated Testfile for 
# Source directory: /work/hd/tests/gpu
# Build directory: /work/hd/b2/tests/gpu
# 
# This file includes the relevant testing commands required for 
# testing this directory and lists subdirectories to be tested as well.
