/* The lwIP image inside the kernel's constants, page-aligned: its code pages are mapped from here for every instance. */
    .section .rodata.stack_image, "a"
    .balign 4096
    .globl stack_image_start
stack_image_start:
    .incbin STACK_IMAGE_FILE
    .globl stack_image_end
stack_image_end:
    .balign 4096
    .section .note.GNU-stack, "", @progbits
