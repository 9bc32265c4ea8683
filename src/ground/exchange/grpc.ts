const grpcType = /^application\/grpc(?:\+[^;]*)?\s*(?:;|$)/i
/** Offset of `grpc` in the content type. */
const grpcOffset = 'application/'.length
const firstLetter = 'g'.charCodeAt(0)

/** Returns true for `application/grpc`, `application/grpc+proto` …, with any parameters. */
export function isGrpc(contentType: string | undefined): boolean {
  // The first letter of `grpc` rules out most types without the pattern.
  if (contentType === undefined || (contentType.charCodeAt(grpcOffset) | 0x20) !== firstLetter)
    return false
  return grpcType.test(contentType)
}
