const grpcType = /^application\/grpc(?:\+[^;]*)?\s*(?:;|$)/i
/** Where `grpc` begins, and its first letter in lower case. */
const at = 'application/'.length
const letter = 'g'.charCodeAt(0)

/** `application/grpc`, `application/grpc+proto` …; parameters do not count. */
export function isGrpc(contentType: string | undefined): boolean {
  // Most types are told apart by one letter, without the pattern.
  if (contentType === undefined || (contentType.charCodeAt(at) | 0x20) !== letter) return false
  return grpcType.test(contentType)
}
