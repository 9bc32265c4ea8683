import { describe, expect, it } from 'vitest'
import {
  type Builtin,
  CoreError,
  compileGuards,
  type GuardRules,
  nameOfCode,
  type TextsOptions,
} from '../../../src/engines/core/index.ts'
import { readCaseFiles } from '../case-files.ts'

interface TextsCase extends Pick<TextsOptions, 'format' | 'message'> {
  readonly title: string
  readonly guards: readonly {
    readonly rules: readonly { pattern?: string; builtin?: string; replacement: string }[]
    readonly rejects?: boolean
  }[]
  readonly input: string
  readonly output?: string
  /** Name of the code of the ABI. */
  readonly code?: string
  readonly rejectedBy?: number
}

const builtins: Readonly<Record<string, Builtin>> = {
  DETECT_EMAIL: 'Email',
  DETECT_CARD: 'CreditCard',
}

const guardsOf = (guards: TextsCase['guards']): GuardRules[] =>
  guards.map(({ rules, rejects = false }) => ({
    rejects,
    rules: rules.map(({ pattern, builtin = '', replacement }) =>
      pattern === undefined
        ? { builtin: builtins[builtin] ?? 'Ssn', replacement }
        : { pattern, replacement },
    ),
  }))

function rewrite({ format, message, guards, input }: TextsCase, cut: number) {
  const outcome = compileGuards(guardsOf(guards))
  if (!outcome.ok) throw new Error(outcome.message)
  const rewriter = outcome.guards.rewriter({ format, message, limit: 1 << 20 })
  const bytes = Buffer.from(input)
  try {
    const parts = [rewriter.push(bytes.subarray(0, cut)), rewriter.end(bytes.subarray(cut))]
    const { rejectedBy } = rewriter.details
    return rejectedBy === undefined ? { output: Buffer.concat(parts).toString() } : { rejectedBy }
  } catch (error) {
    if (error instanceof CoreError) return { code: nameOfCode(error.code) }
    throw error
  } finally {
    rewriter.dispose()
    outcome.guards.dispose()
  }
}

for (const { name, about, cases } of readCaseFiles<TextsCase>('texts/cases')) {
  describe(`${name}: ${about}`, () => {
    it.each(cases)('$title', (example) => {
      const { output, code, rejectedBy } = example
      const size = Buffer.byteLength(example.input)
      for (let cut = 0; cut <= size; cut += Math.max(1, Math.floor(size / 100))) {
        expect(rewrite(example, cut), `cut at ${cut}`).toEqual({ output, code, rejectedBy })
      }
    })
  })
}
