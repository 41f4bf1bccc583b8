# stof_embed(<target> <directory> <module> <Kind> <pattern>...)
#
# Compiles every file below <directory> that a pattern matches into <target>, so that an installed
# library needs no files beside it. For the kind Template the table is read through
# <module>/embedded_templates.hpp, which declares struct EmbeddedTemplate {path, text} and
# embedded_templates().
function(stof_embed target directory module kind)
    list(TRANSFORM ARGN PREPEND ${directory}/)
    file(GLOB_RECURSE names CONFIGURE_DEPENDS RELATIVE ${directory} ${ARGN})
    list(SORT names)
    list(TRANSFORM names PREPEND ${directory}/ OUTPUT_VARIABLE files)
    string(TOLOWER embedded_${kind}s table)
    set(script ${PROJECT_SOURCE_DIR}/cmake/EmbedFiles.cmake)
    set(output ${CMAKE_CURRENT_BINARY_DIR}/${table}.cpp)
    add_custom_command(
        OUTPUT ${output}
        COMMAND ${CMAKE_COMMAND} -D DIRECTORY=${directory} -D "NAMES=${names}" -D OUTPUT=${output}
            -D MODULE=${module} -D TYPE=Embedded${kind} -D TABLE=${table} -P ${script}
        DEPENDS ${files} ${script}
        COMMENT "Embedding ${table}"
        VERBATIM
    )
    target_sources(${target} PRIVATE ${output})
endfunction()
