import { parsePath } from '../../../engines/json/paths.ts'
import type { References } from '../../../ground/model/references.ts'
import {
  choice,
  type Infer,
  list,
  object,
  optional,
  required,
  text,
} from '../../../ground/schema/field.ts'
import { atLeastOneOf, exactlyOneOf } from '../../../ground/schema/rules.ts'
import { GuardCompiler } from '../../backends/ai/policy/guard-compiler.ts'
import { guardFields, guardKinds } from '../../backends/ai/policy/schema.ts'
import { type Compiled, definePolicy } from '../define.ts'
import type { JsonGuardConfig, PathGuardConfig } from './config.ts'

const path = text({ min: 1, max: 256 })

const pathGuard = object(
  'JSONPathGuard',
  {
    paths: required(
      list(path, { min: 1, max: 32 }),
      'What the guard reads, such as `messages[*].text` or `$..note`: all texts at and below these paths (RFC 9535 with names, indexes, `*` and `..`).',
    ),
    ...guardFields,
  },
  { rules: [exactlyOneOf(...guardKinds)], isBrief: true },
)

const guards = list(pathGuard, { min: 1, max: 8 })

const jsonGuardSchema = object(
  'JSONGuard',
  {
    request: optional(guards, 'Guards of request bodies.'),
    response: optional(guards, 'Guards of response bodies.'),
    otherTypes: optional(
      choice('JSONGuardOtherTypes', {
        Refuse: 'requests fail with 415, and responses with 502',
        Pass: 'they pass unread, which is recorded',
      }),
      {
        doc: 'What happens to bodies whose Content-Type is neither JSON, NDJSON nor server-sent events, or names a charset other than UTF-8.',
        default: 'Refuse',
      },
    ),
  },
  { rules: [atLeastOneOf('request', 'response')] },
)
type JsonGuardSpec = Infer<typeof jsonGuardSchema>
type PathGuardSpec = NonNullable<JsonGuardSpec['request']>[number]

/** Compiles the guards of one direction. If a path is invalid, the policy is not accepted. */
function compileGuards(
  specs: readonly PathGuardSpec[],
  direction: 'request' | 'response',
  compiler: GuardCompiler,
): PathGuardConfig[] {
  return specs.flatMap(({ paths, ...spec }, at) => {
    for (const [index, path] of paths.entries()) {
      const parsed = parsePath(path)
      if (typeof parsed === 'string') compiler.refuse(`${direction}[${at}].paths[${index}]`, parsed)
    }
    const guard = compiler.compileOne(spec, direction, at)
    return guard === undefined ? [] : [{ paths: [...new Set(paths)], guard }]
  })
}

function compile(
  { request = [], response = [], otherTypes }: JsonGuardSpec,
  references: References,
): Compiled<JsonGuardConfig> {
  const compiler = new GuardCompiler(references, 'json')
  const config = {
    request: compileGuards(request, 'request', compiler),
    response: compileGuards(response, 'response', compiler),
    passesOther: otherTypes === 'Pass',
  }
  return { config, problems: compiler.problems, secrets: compiler.secrets }
}

/** Guards of JSON bodies. Because it protects, all requests are rejected if it is invalid. */
export const jsonGuard = definePolicy({
  section: 'traffic',
  field: 'jsonGuard',
  schema: jsonGuardSchema,
  doc: 'Checks texts in the JSON bodies of any HTTP API, and masks or refuses them.',
  security: true,
  conditional: 'at most one',
  compile,
  apply: () => import('./apply.ts'),
})
