/**
 * Each resource has one subject: `sluice.<cluster>.<kind>.<namespace>.<name>`.
 *
 * Tokens have ASCII letters, digits, '-' and '_' only. Every other byte is written as `%XX`, since
 * dots, '*', '>' and white space have a meaning in NATS. An empty token (the namespace of a
 * cluster-scoped object) is written `_`, and the token `_` is written `%5F`.
 */
export interface SubjectParts {
  /** If omitted, `local`. */
  readonly cluster?: string
  readonly kind: string
  /** Empty or omitted for cluster-scoped objects. */
  readonly namespace?: string
  readonly name: string
}

const prefix = 'sluice'

/** One log holds one cluster, so the name is always the same. */
const clusterName = 'local'

/** Returns the subject of a resource. Different resources with well-formed names have different subjects. */
export function subjectOf({
  cluster = clusterName,
  kind,
  namespace = '',
  name,
}: SubjectParts): string {
  return [prefix, ...[cluster, kind, namespace, name].map(escapeToken)].join('.')
}

/** Returns the parts of a subject, or undefined if it is not the subject of a resource. */
export function parseSubject(subject: string): SubjectParts | undefined {
  const tokens = subject.split('.')
  if (tokens.length !== 5 || tokens[0] !== prefix) return undefined
  const parts = tokens.slice(1).map(unescapeToken)
  const [cluster, kind, namespace, name] = parts
  if (cluster === undefined || kind === undefined) return undefined
  if (namespace === undefined || name === undefined) return undefined
  return { cluster, kind, namespace, name }
}

function escapeToken(text: string): string {
  if (text === '') return '_'
  if (text === '_') return '%5F'
  return encodeURIComponent(text.toWellFormed()).replace(/[!~*'().]/g, escapeCharacter)
}

function escapeCharacter(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`
}

function unescapeToken(token: string): string | undefined {
  if (token === '_') return ''
  if (!/^[A-Za-z0-9_%-]+$/.test(token)) return undefined
  try {
    return decodeURIComponent(token)
  } catch {
    return undefined
  }
}
