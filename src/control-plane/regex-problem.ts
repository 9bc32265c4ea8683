import { checkRegex } from '../core/regex.ts'

/** Why a pattern cannot be used, by the engine that would run it; undefined where it can. */
export function regexProblem(pattern: string): string | undefined {
  const checked = checkRegex(pattern)
  return checked.ok ? undefined : checked.message
}
