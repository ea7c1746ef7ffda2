# Writes a C file with the fingerprint of the timing model: SHA-256 over the sources of what turns PTX
# into a modelled time, and over the descriptions of the GPUs. Run by cmake -P.
#   SOURCE  the folder that the files are named from
#   FILES   the files, with commas between, relative to SOURCE
#   OUT     the C file
string(REPLACE "," ";" files "${FILES}")
list(SORT files)
set(lines)
foreach(name IN LISTS files)
  file(SHA256 "${SOURCE}/${name}" hash)
  string(APPEND lines "${name} ${hash}\n")
endforeach()
string(SHA256 whole "${lines}")
string(SUBSTRING "${whole}" 0 16 short)
file(WRITE "${OUT}" "/* Made by cmake/model_version.cmake. */
#include \"fitness/model/version.h\"

const char *model_version(void) {
    return \"${short}\";
}
")
