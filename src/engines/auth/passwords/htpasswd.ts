/** Parses the lines of an htpasswd file, and recognizes the hashes that can be checked. */

export type PasswordHashKind = 'bcrypt' | 'apr1' | 'sha1' | 'crypt'

/**
 * The hash formats that can be checked: MD5 (apr1), bcrypt, SHA-1 and crypt(3), which is the traditional
 * format or begins with `$1$` (MD5), `$5$` (SHA-256) or `$6$` (SHA-512). Costs that would take minutes are
 * not supported: bcrypt costs above 16, and more than 999999 rounds.
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
 * Matches a line with something that looks like a hash, which plain passwords hardly ever do; valid in RE2
 * and in JavaScript. Users whose hash matches but cannot be checked are refused.
 */
export const htpasswdLinePattern =
  '^[^:\\r\\n]+:(?:\\$[^\\r\\n]+|\\{SHA\\}[^\\r\\n]+|[./A-Za-z0-9]{13})$'

/** Returns undefined for plain passwords and for hashes that cannot be checked. */
export function passwordHashKind(hash: string): PasswordHashKind | undefined {
  return patterns.find(([, pattern]) => pattern.test(hash))?.[0]
}

interface HtpasswdLine {
  /** Line number, from 1. */
  readonly line: number
  /** Undefined if the line is malformed. */
  readonly user: string | undefined
  readonly hash: string
}

/** Parses the lines that are neither blank nor comments. */
export function htpasswdLines(text: string): HtpasswdLine[] {
  return text.split(/\r?\n/).flatMap((content, index): HtpasswdLine[] => {
    if (content.trim() === '' || content.startsWith('#')) return []
    const colon = content.indexOf(':')
    if (colon <= 0) return [{ line: index + 1, user: undefined, hash: '' }]
    const hash = content.slice(colon + 1).trim()
    return [{ line: index + 1, user: content.slice(0, colon), hash }]
  })
}
