/**
 * How a received body is framed (RFC 9112 6.3). `stream`: by HTTP/2, which marks the end of the body
 * and may announce its length.
 */
export type BodyKind = 'none' | 'length' | 'chunked' | 'close' | 'stream'
