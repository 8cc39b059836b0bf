# cmake -DOUT=file.c -DFILES=a.css;b.js -DNAMES=pm_a;pm_b -P embed.cmake
# Each file becomes `const char NAME[]`, ended by a zero.
set(text "/* made by src/report/embed.cmake */\n")
foreach(file name IN ZIP_LISTS FILES NAMES)
    file(READ ${file} bytes HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(APPEND text "extern const char ${name}[];\nconst char ${name}[] = { ${bytes}0 };\n")
endforeach()
file(WRITE ${OUT} "${text}")
