/** Size of a node in pixels. */
export const nodeWidth = 164
export const nodeHeight = 44
