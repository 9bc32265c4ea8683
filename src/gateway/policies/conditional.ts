/**
 * Conditional policies: a field with `conditional` has a list of variants, and each request gets the first one whose
 * condition is true. A definition permits it with its field `conditional` and knows no more of it; its `compile` and `apply`
 * see one variant at a time.
 */
import type { References } from '../../ground/model/references.ts'
import {
  list,
  type ObjectNode,
  object,
  optional,
  type Rule,
  required,
  type Schema,
  withRules,
} from '../../ground/schema/field.ts'
import { rule } from '../../ground/schema/rules.ts'
import { celExpression } from '../../ground/schema/strings.ts'
import type { Compiled, PolicyDefinition } from './define.ts'

/** What a field contains if it has variants. */
interface ConditionalSpec {
  readonly conditional: readonly VariantSpec[]
}

interface VariantSpec {
  readonly condition?: string
  readonly policy: unknown
}

/** The compiled form of a field with variants. */
export interface ConditionalConfig {
  readonly conditional: readonly VariantConfig[]
}

interface VariantConfig {
  /** Omitted if the variant gets all requests that the ones before it do not get. */
  readonly condition?: string
  readonly config: unknown
}

const isConditionalSpec = (spec: unknown): spec is ConditionalSpec =>
  typeof spec === 'object' && spec !== null && 'conditional' in spec && spec.conditional !== null

/** Whether a compiled form has variants. */
export const isConditional = (config: unknown): config is ConditionalConfig =>
  typeof config === 'object' &&
  config !== null &&
  'conditional' in config &&
  Array.isArray(config.conditional)

/** The compiled forms of all variants; that of the policy itself if it has none. */
export const configsOf = (config: unknown): readonly unknown[] =>
  isConditional(config) ? config.conditional.map((variant) => variant.config) : [config]

/** With more, the API server finds the rules about `forwardBody.maxSize` too expensive. */
const maxVariants = 15

/** The schema of a field of which users can write variants. */
export function withVariants({ schema, conditional }: PolicyDefinition): Schema<unknown> {
  const node = schema.node as ObjectNode
  const fields = Object.entries(node.fields)
  const names = fields.map(([name]) => name)
  const needed = fields.filter(([, field]) => field.required).map(([name]) => name)
  const variant = object(`Conditional${node.name}`, {
    condition: optional(
      celExpression,
      'When the variant applies. If not set, it applies to all remaining requests. An expression that fails counts as false.',
    ),
    policy: required(schema, 'The policy of the variant, which cannot have variants itself.'),
  })
  const variants = withRules(
    list(variant, { min: 1, max: maxVariants }),
    conditional === 'always one' ? lastForAll : onlyLastForAll,
  )
  const whole: ObjectNode = {
    ...node,
    fields: {
      ...Object.fromEntries(fields.map(([name, field]) => [name, { ...field, required: false }])),
      conditional: optional(
        variants,
        'Variants of this policy, instead of its other fields. Each request gets the first variant whose condition is true.',
      ),
    },
    rules: [
      alone(names),
      ...needed.map(neededUnlessConditional),
      ...(node.rules ?? []).map(unlessConditional),
    ],
  }
  return { node: whole }
}

type Members = Readonly<Record<string, unknown>>

const has = (field: string) => `has(self.${field})`

const alone = (names: readonly string[]): Rule => ({
  ...rule<Members>({
    message: 'conditional excludes the other fields of the policy',
    cel: `!has(self.conditional) || !(${names.map(has).join(' || ')})`,
    holds: (value) =>
      value.conditional === undefined || names.every((name) => value[name] === undefined),
    at: 'conditional',
  }),
  presence: true,
})

const neededUnlessConditional = (name: string): Rule => ({
  ...rule<Members>({
    message: `${name} is required unless conditional is set`,
    cel: `has(self.conditional) || ${has(name)}`,
    holds: (value) => value.conditional !== undefined || value[name] !== undefined,
    at: name,
  }),
  presence: true,
})

/** A rule of the policy itself holds for each variant, and not for the list of them. */
function unlessConditional({ group: _, ...own }: Rule): Rule {
  const holds = own.holds as (value: Members) => boolean
  return {
    ...own,
    ...(own.cel !== undefined && { cel: `has(self.conditional) || (${own.cel})` }),
    holds: (value: Members) => value.conditional !== undefined || holds(value),
  }
}

type Variants = readonly VariantSpec[]

const indexOfOpen = (variants: Variants) =>
  variants.findIndex(({ condition }) => condition === undefined)

const onlyLastForAll = rule<Variants>({
  message: 'only the last variant may have no condition, since it gets all requests that are left',
  cel: 'self.filter(v, !has(v.condition)).size() == (has(self[self.size() - 1].condition) ? 0 : 1)',
  holds: (variants) => {
    const open = indexOfOpen(variants)
    return open < 0 || open === variants.length - 1
  },
})

const lastForAll = rule<Variants>({
  message:
    'the last variant must have no condition and all others must have one, so that no request is without this protection',
  cel: 'self.filter(v, !has(v.condition)).size() == 1 && !has(self[self.size() - 1].condition)',
  holds: (variants) => indexOfOpen(variants) === variants.length - 1,
})

const notCompiled = (): Compiled<unknown> => ({ problems: [] })

/** Compiles a field, or each of its variants. */
export function compileVariants(
  definition: PolicyDefinition,
  spec: unknown,
  references: References,
): Compiled<unknown> {
  const compile = definition.compile ?? notCompiled
  if (definition.conditional === undefined || !isConditionalSpec(spec))
    return compile(spec, references)
  const compiled = spec.conditional.map(({ policy }) => compile(policy, references))
  const place = (at: number, path: string) =>
    `conditional[${at}].policy${path === '' ? '' : `.${path}`}`
  const isFatal = ({ problems }: Compiled<unknown>) => problems.some(({ partial }) => !partial)
  const isWhole = compiled.every(({ config }) => config !== undefined)
  return {
    ...(isWhole && { config: configOf(spec.conditional, compiled) }),
    problems: compiled.flatMap(({ problems }, at) =>
      problems.map((problem) => ({ ...problem, path: place(at, problem.path) })),
    ),
    ...(isWhole && compiled.every((one) => !isFatal(one) || one.protects === true)
      ? { protects: true as const }
      : {}),
    secrets: compiled.flatMap(({ secrets = [] }) => secrets),
    notes: compiled.flatMap(({ notes = [] }, at) =>
      notes.map((note) => `${place(at, '')}.${note}`),
    ),
  }
}

const configOf = (
  variants: Variants,
  compiled: readonly Compiled<unknown>[],
): ConditionalConfig => ({
  conditional: variants.map(({ condition }, at) => ({
    ...(condition !== undefined && { condition }),
    config: compiled[at]?.config,
  })),
})
