/** Finds regular expressions of HTTPRoutes and GRPCRoutes that never match, because a prefix has precedence. */

import type { SourceProblem } from '../../../control/watch/source-problem.ts'
import { type ObjectRef, objectKey, objectText } from '../../../ground/model/names.ts'
import type {
  Attachment,
  NamedMatch,
  RouteMatch,
  RouteResource,
} from '../../../ground/model/resources.ts'
import type { Fold } from '../../../past/replay/index.ts'
import type { FieldPlaces } from '../recording/field-places.ts'
import type { Recording } from '../recording/recording.ts'
import { writtenObjects } from '../recording/written-objects.ts'

/** A match with a path prefix, and the rule that has it. */
interface PrefixMatch {
  readonly match: RouteMatch
  readonly route: ObjectRef
  readonly ruleIndex: number
}

/**
 * One warning for each match with a regular expression that no request can reach: prefixes come before regular
 * expressions, and on every host of the route a prefix matches the same requests.
 */
export function unreachableRules(
  recording: Pick<Recording, 'events'>,
  fold: Fold,
  places: FieldPlaces,
): SourceProblem[] {
  const rules = fold
    .resources()
    .map(({ resource }) => resource)
    .filter((resource) => resource.type === 'route')
  const prefixes = prefixesByHost(rules)
  const byRoute = Map.groupBy(rules, ({ route }) => objectKey(route))
  return writtenObjects(recording).flatMap((written) => {
    const { kind, namespace, name } = written
    const own = byRoute.get(objectKey({ kind, namespace, name })) ?? []
    return own.flatMap((rule) =>
      rule.matches.flatMap((match, index): SourceProblem[] => {
        const first = winnerOf(match, rule.attachments, prefixes)
        if (first === undefined) return []
        const path = `spec.rules[${rule.ruleIndex}].matches[${index}]`
        const winner = `spec.rules[${first.ruleIndex}] of ${objectText(first.route)}`
        const prefix = first.match.path.value
        const message = `never matches: prefixes come before regular expressions, and ${winner} takes every path under ${prefix}; use a prefix or an exact path here, or a longer prefix there`
        const place = places.find(written, path)
        const common = { severity: 'warning', reason: 'unreachable' } as const
        return [{ ...common, ...place, kind, namespace, name, path, message }]
      }),
    )
  })
}

const hostsOf = (attachments: readonly Attachment[]): string[] =>
  attachments.flatMap(({ listener, hostnames }) => hostnames.map((host) => `${listener} ${host}`))

function prefixesByHost(
  rules: readonly RouteResource[],
): ReadonlyMap<string, readonly PrefixMatch[]> {
  const found = new Map<string, PrefixMatch[]>()
  for (const { matches, attachments, route, ruleIndex } of rules) {
    const own = matches
      .filter(({ path }) => path.type === 'PathPrefix')
      .map((match) => ({ match, route, ruleIndex }))
    for (const host of hostsOf(attachments)) found.set(host, [...(found.get(host) ?? []), ...own])
  }
  return found
}

/** A match that takes all requests of the other one; undefined if there is a host without any. */
function winnerOf(
  match: RouteMatch,
  attachments: readonly Attachment[],
  prefixes: ReadonlyMap<string, readonly PrefixMatch[]>,
): PrefixMatch | undefined {
  if (match.path.type !== 'RegularExpression') return undefined
  const winners = hostsOf(attachments).map((host) =>
    prefixes.get(host)?.find((prefix) => takesAllOf(prefix.match, match)),
  )
  return winners.every((winner) => winner !== undefined) ? winners[0] : undefined
}

function takesAllOf(prefix: RouteMatch, other: RouteMatch): boolean {
  return (
    (prefix.method === undefined || prefix.method === other.method) &&
    prefix.headers.every((one) => other.headers.some((two) => isSame(one, two))) &&
    prefix.query.every((one) => other.query.some((two) => isSame(one, two))) &&
    isUnder(prefix.path.value, other.path.value)
  )
}

const isSame = (a: NamedMatch, b: NamedMatch): boolean =>
  a.type === b.type && a.name.toLowerCase() === b.name.toLowerCase() && a.value === b.value

/** Whether every path that the pattern matches is under the prefix. A doubt means no. */
function isUnder(prefix: string, pattern: string): boolean {
  const folder = prefix.endsWith('/') ? prefix : `${prefix}/`
  if (folder === '/') return true
  const { text, isWhole } = literalStart(pattern)
  return text.startsWith(folder) || (isWhole && text === prefix)
}

/** The text with which all matches of a pattern begin, and whether the pattern is nothing but that text. */
function literalStart(pattern: string): { readonly text: string; readonly isWhole: boolean } {
  let text = ''
  // An alternative may begin with another text.
  if (hasTopLevelAlternative(pattern)) return { text, isWhole: false }
  let at = pattern.startsWith('^') ? 1 : 0
  while (at < pattern.length) {
    const [, escaped, plain] =
      /^(?:\\([^0-9A-Za-z])|([^\\^$.|?*+()[\]{}]))/.exec(pattern.slice(at)) ?? []
    const char = escaped ?? plain
    if (char === undefined) break
    at += escaped === undefined ? 1 : 2
    // The character may be missing.
    if (/^[?*{]/.test(pattern.slice(at))) return { text, isWhole: false }
    text += char
    if (pattern[at] === '+') return { text, isWhole: false }
  }
  const rest = pattern.slice(at)
  return { text, isWhole: rest === '' || rest === '$' }
}

function hasTopLevelAlternative(pattern: string): boolean {
  const withoutClasses = pattern.replace(/\\.|\[\^?\]?(?:\\.|[^\]\\])*\]/gs, '')
  let depth = 0
  for (const char of withoutClasses) {
    if (char === '|' && depth === 0) return true
    if (char === '(') depth++
    else if (char === ')') depth--
  }
  return false
}
