/**
 * One resource, one subject: `sluice.<cluster>.<kind>.<namespace>.<name>`.
 *
 * Tokens hold ASCII letters, digits, '-' and '_' only; every other byte is written as `%XX`, since
 * NATS gives a meaning to dots, '*', '>' and white space. An empty token (the namespace of a
 * cluster-scoped object) is written `_`, and a token that is itself `_` is `%5F`.
 */
interface SubjectParts {
  readonly cluster: string
  readonly kind: string
  /** Empty for cluster-scoped objects. */
  readonly namespace: string
  readonly name: string
}

const prefix = 'sluice'

/** Name of the cluster in subjects: one log holds one cluster. */
export const clusterName = 'local'

/** The subject of a resource. Total and injective over well-formed strings. */
export function subjectOf(parts: SubjectParts): string {
  const { cluster, kind, namespace, name } = parts
  return [prefix, ...[cluster, kind, namespace, name].map(escapeToken)].join('.')
}

/** The parts of a subject, or undefined where it is not one of ours. */
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
