/** Size of a node in pixels. */
export const nodeWidth = 180
export const nodeHeight = 44
