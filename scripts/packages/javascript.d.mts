export function packJavaScript(release: {
  version: string
}): Promise<{ name: string; bytes: Buffer }>
