/** `application/grpc`, `application/grpc+proto` …; parameters do not count. */
export function isGrpc(contentType: string | undefined): boolean {
  return contentType !== undefined && /^application\/grpc(?:\+[^;]*)?\s*(?:;|$)/i.test(contentType)
}
