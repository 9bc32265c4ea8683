/** The texts that replace secrets in observed objects, and thereby in the event log. */
import { isCredentialName } from './credential-names.ts'

/**
 * Content of a secret field: a secret, a header value, or an expression for a header value. The name of the
 * header is in the field `name` of the same object, or it is the key of a map. A header value is secret only if
 * the header has the name of a credential.
 */
export type SecretContent = 'value' | 'header' | 'headerExpression'

/** Returns the text that replaces an inline secret. It is a string, so that the object keeps its shape. */
export function secretPlaceholder(digest: string): string {
  return `secret:${digest}`
}

const placeholder = /^secret:([0-9a-f]{32})$/

/** Returns the digest that a placeholder names; undefined if the text is no placeholder. */
export function placeholderDigest(text: string): string | undefined {
  return placeholder.exec(text)?.[1]
}

/** Whether the value of a header with this name is a credential. */
export const isCredentialHeader = (name: unknown): name is string =>
  typeof name === 'string' && (isCredentialName(name) || name.toLowerCase() === 'set-cookie')

/**
 * Matches a comment or an index such as `["x-user"]`, which are kept, or a string literal of CEL. Replacing
 * literals by literals does not change what else matches.
 */
const literal =
  /(\/\/[^\n]*|(?<=[\w\])])(?<!\bin)\[\s*(?:"[^"]*"|'[^']*')\s*\])|[rR](?:"[^"]*"|'[^']*')|"""[\s\S]*?"""|'''[\s\S]*?'''|"(?:[^"\\]|\\[\s\S])*"|'(?:[^'\\]|\\[\s\S])*'/g

/** Replaces the string literals of an expression, given and returned with their quotes. */
export const replaceLiterals = (expression: string, replace: (literal: string) => string): string =>
  expression.replace(literal, (found, kept?: string) => kept ?? replace(found))

/** Returns the digest of a literal that is a placeholder in double quotes; undefined if it is another. */
export function literalDigest(found: string): string | undefined {
  return found.startsWith('"') ? placeholderDigest(found.slice(1, -1)) : undefined
}
