/* The vDSO image inside the kernel's constants. */
    .section .rodata.vdso_image, "a"
    .balign 16
    .globl vdso_image_start
vdso_image_start:
    .incbin VDSO_IMAGE_FILE
    .globl vdso_image_end
vdso_image_end:
    .section .note.GNU-stack, "", @progbits
