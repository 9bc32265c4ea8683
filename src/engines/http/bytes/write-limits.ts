/**
 * Writes up to this size are made as one Latin-1 string, a copy, so that the source may be reused.
 * Larger writes are views of the source, which must not change until the socket has drained.
 */
export const copyLimit = 16 * 1024

/** High-water mark of sockets: equal, so that a pending view always ends in a drain event. */
export const socketHighWaterMark = copyLimit

/**
 * High-water mark of TLS sockets, whose handles copy what they encrypt and report the end of a write
 * one tick later. It has room for two reads of an upstream, so that neither waits needlessly.
 */
export const encryptedHighWaterMark = 128 * 1024
