/** The lines of an htpasswd file, and which hashes can be checked. */

export type PasswordHashKind = 'bcrypt' | 'apr1' | 'sha1' | 'crypt'

/**
 * MD5 (apr1), bcrypt, SHA-1 and crypt(3): the traditional form, and those that begin with `$1$`
 * (MD5), `$5$` (SHA-256) and `$6$` (SHA-512). Costs that would take minutes are left out: bcrypt
 * above 16, more than 999999 rounds.
 */
const forms: readonly (readonly [PasswordHashKind, string])[] = [
  ['bcrypt', '\\$2[aby]\\$(?:0[4-9]|1[0-6])\\$[./A-Za-z0-9]{53}'],
  ['apr1', '\\$apr1\\$[^$:]{1,8}\\$[./A-Za-z0-9]{22}'],
  ['sha1', '\\{SHA\\}[A-Za-z0-9+/]{27}='],
  ['crypt', '[./A-Za-z0-9]{13}'],
  ['crypt', '\\$1\\$[^$:]{0,8}\\$[./A-Za-z0-9]{22}'],
  ['crypt', '\\$5\\$(?:rounds=[1-9][0-9]{3,5}\\$)?[^$:]{0,16}\\$[./A-Za-z0-9]{43}'],
  ['crypt', '\\$6\\$(?:rounds=[1-9][0-9]{3,5}\\$)?[^$:]{0,16}\\$[./A-Za-z0-9]{86}'],
]
const patterns = forms.map(([kind, form]) => [kind, new RegExp(`^(?:${form})$`)] as const)

/**
 * One line with something that has the look of a hash, which a plain password hardly ever has; valid
 * in RE2 and in JavaScript. A hash that cannot be checked lets nobody in.
 */
export const htpasswdLinePattern =
  '^[^:\\r\\n]+:(?:\\$[^\\r\\n]+|\\{SHA\\}[^\\r\\n]+|[./A-Za-z0-9]{13})$'

/** Undefined for plain passwords and for forms that cannot be checked. */
export function passwordHashKind(hash: string): PasswordHashKind | undefined {
  return patterns.find(([, pattern]) => pattern.test(hash))?.[0]
}

interface HtpasswdLine {
  /** Counted from 1. */
  readonly line: number
  /** Undefined where the line has none: it is malformed. */
  readonly user: string | undefined
  readonly hash: string
}

/** Lines that are neither blank nor comments. */
export function htpasswdLines(text: string): HtpasswdLine[] {
  return text.split(/\r?\n/).flatMap((content, index): HtpasswdLine[] => {
    if (content.trim() === '' || content.startsWith('#')) return []
    const colon = content.indexOf(':')
    if (colon <= 0) return [{ line: index + 1, user: undefined, hash: '' }]
    const hash = content.slice(colon + 1).trim()
    return [{ line: index + 1, user: content.slice(0, colon), hash }]
  })
}
