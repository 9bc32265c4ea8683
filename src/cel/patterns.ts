/** Regular expressions of expressions: compiled once, kept in a bounded cache, linear in the text. */
import { checkRegex, compileRegex, type Regex } from '../core/regex.ts'
import { CelError } from './error.ts'
import { type Frame, spend, stepsOfLength } from './frame.ts'
import type { CelResult } from './value.ts'

const maxCached = 512

interface Entry {
  readonly regex: Regex | CelError
  /** Asked for since the cache was last looked through. */
  isUsed: boolean
}

const cache = new Map<string, Entry>()

/** Why a text is no pattern; undefined when it is one. */
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

/** Drops the oldest pattern that nobody has asked for in a while. */
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

/** Does the pattern match anywhere in the text? */
export function matchesPattern(frame: Frame, text: string, pattern: string): CelResult {
  const cost = spend(frame, 1 + stepsOfLength(4 * text.length + pattern.length))
  if (cost !== undefined) return cost
  const regex = regexOf(pattern)
  return regex instanceof CelError ? regex : regex.isMatch(text)
}

/** Puts `by` in place of every match; `$0` in it is the match, `$$` a dollar sign. */
export function replacePattern(frame: Frame, text: string, pattern: string, by: string): CelResult {
  const wrong = replacementProblem(by)
  if (wrong !== undefined) return new CelError('value', wrong)
  const cost = spend(frame, 1 + stepsOfLength(16 * text.length + pattern.length))
  if (cost !== undefined) return cost
  const regex = regexOf(pattern)
  if (regex instanceof CelError) return regex
  const spans = regex.findAll(text)
  const over = spend(frame, stepsOfLength(text.length + spans.length * by.length))
  if (over !== undefined) return over
  let result = ''
  let end = 0
  for (const span of spans) {
    const match = text.slice(span.start, span.end)
    result += text.slice(end, span.start) + expand(by, match)
    end = span.end
  }
  return result + text.slice(end)
}

/** Groups cannot be put in: the core's regexes report matches, not their groups. */
export function replacementProblem(by: string): string | undefined {
  const references = by.replaceAll('$$', '').match(/\$(\w+|\{[^}]*\})/g) ?? []
  const reference = references.find((part) => !/^\$(0|\{0\})$/.test(part))
  return reference === undefined
    ? undefined
    : `the replacement names the group ${reference}; only $0, the whole match, can be put in`
}

function expand(by: string, match: string): string {
  if (!by.includes('$')) return by
  return by.replace(/\$\$|\$0|\$\{0\}/g, (part) => (part === '$$' ? '$' : match))
}
