/** Regular expressions. They are compiled once, kept in a bounded cache, and take time linear in the text. */
import { checkRegex, compileRegex, type Regex } from '../core/regex.ts'
import { CelError } from './error.ts'
import { type EvaluationFrame, spend, stepsOfLength } from './frame.ts'
import type { CelResult } from './value.ts'

const maxCached = 512

interface Entry {
  readonly regex: Regex | CelError
  /** Whether the pattern was used since `makeRoom` last looked at it. */
  isUsed: boolean
}

const cache = new Map<string, Entry>()

/** Returns why a text is not a valid pattern; undefined if it is valid. */
export function patternProblem(pattern: string): string | undefined {
  const outcome = checkRegex(pattern)
  return outcome.ok ? undefined : outcome.message
}

function regexOf(pattern: string): Regex | CelError {
  const found = cache.get(pattern)
  if (found !== undefined) {
    found.isUsed = true
    return found.regex
  }
  if (cache.size >= maxCached) makeRoom()
  const outcome = compileRegex(pattern)
  const regex = outcome.ok
    ? outcome.regex
    : new CelError('value', `the pattern is not valid: ${outcome.message}`)
  cache.set(pattern, { regex, isUsed: true })
  return regex
}

/** Drops the oldest pattern that was not used recently. */
function makeRoom(): void {
  for (const [pattern, entry] of cache) {
    cache.delete(pattern)
    if (entry.isUsed) {
      entry.isUsed = false
      cache.set(pattern, entry)
      continue
    }
    if (!(entry.regex instanceof CelError)) entry.regex.dispose()
    return
  }
}

/** Returns true if the pattern matches anywhere in the text. */
export function matchesPattern(frame: EvaluationFrame, text: string, pattern: string): CelResult {
  const cost = spend(frame, 1 + stepsOfLength(4 * text.length + pattern.length))
  if (cost !== undefined) return cost
  const regex = regexOf(pattern)
  return regex instanceof CelError ? regex : regex.isMatch(text)
}

/** Replaces every match. In the replacement, `$0` is the match and `$$` a dollar sign. */
export function replacePattern(
  frame: EvaluationFrame,
  text: string,
  pattern: string,
  replacement: string,
): CelResult {
  const wrong = replacementProblem(replacement)
  if (wrong !== undefined) return new CelError('value', wrong)
  const cost = spend(frame, 1 + stepsOfLength(16 * text.length + pattern.length))
  if (cost !== undefined) return cost
  const regex = regexOf(pattern)
  if (regex instanceof CelError) return regex
  const spans = regex.findAll(text)
  const over = spend(frame, stepsOfLength(text.length + spans.length * replacement.length))
  if (over !== undefined) return over
  let result = ''
  let end = 0
  for (const span of spans) {
    const match = text.slice(span.start, span.end)
    result += text.slice(end, span.start) + expand(replacement, match)
    end = span.end
  }
  return result + text.slice(end)
}

/** Returns a problem if a replacement names groups, which the core's regexes do not report. */
export function replacementProblem(replacement: string): string | undefined {
  const references = replacement.replaceAll('$$', '').match(/\$(\w+|\{[^}]*\})/g) ?? []
  const reference = references.find((part) => !/^\$(0|\{0\})$/.test(part))
  return reference === undefined
    ? undefined
    : `the replacement names the group ${reference}; only $0, the whole match, can be put in`
}

function expand(replacement: string, match: string): string {
  if (!replacement.includes('$')) return replacement
  return replacement.replace(/\$\$|\$0|\$\{0\}/g, (part) => (part === '$$' ? '$' : match))
}
