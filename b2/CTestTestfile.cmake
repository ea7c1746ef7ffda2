# CMake generated Testfile for 
# Source directory: /work/hd
# Build directory: /work/hd/b2
# 
# This file includes the relevant testing commands required for 
# testing this directory and lists subdirectories to be tested as well.
subdirs("base")
subdirs("corpora")
subdirs("kernels")
subdirs("ir")
subdirs("fitness")
subdirs("bundle")
subdirs("tuner")
subdirs("tests")
