import type { SecretRef } from './resources.ts'

/** What observation leaves of an inline secret: see `secretPlaceholder`. */
const placeholder = /^secret:(.+)$/

/** The reference by which an inline secret travels; `path`: where it stands, for messages. */
export function inlineSecretRef(text: string, path: string): SecretRef {
  return { namespace: '', name: '', key: path, digest: placeholder.exec(text)?.[1] ?? text }
}
