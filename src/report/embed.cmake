# cmake -DOUT=file.c -DFILES=a.css;b.js -DNAMES=pm_a;pm_b -P embed.cmake
# Each file becomes `const char NAME[]`, ended by a zero, and `const unsigned char NAME_sha256[32]`.
set(text "/* made by src/report/embed.cmake */\n")
foreach(file name IN ZIP_LISTS FILES NAMES)
    file(READ ${file} bytes HEX)
    file(SHA256 ${file} sum)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," sum "${sum}")
    string(APPEND text "extern const char ${name}[];\nconst char ${name}[] = { ${bytes}0 };\n"
        "extern const unsigned char ${name}_sha256[32];\n"
        "const unsigned char ${name}_sha256[32] = { ${sum} };\n")
endforeach()
file(WRITE ${OUT} "${text}")
