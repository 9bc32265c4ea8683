import type { SecretRef } from './resources.ts'

/** The text that replaces an inline secret in an observed object: see `secretPlaceholder`. */
const placeholder = /^secret:(.+)$/

/** Makes a reference to an inline secret. `path` is the path of the field that holds it, for messages. */
export function inlineSecretRef(text: string, path: string): SecretRef {
  return { namespace: '', name: '', key: path, digest: placeholder.exec(text)?.[1] ?? text }
}
