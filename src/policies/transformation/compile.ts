import type { Compiled, PolicyProblem } from '../define.ts'
import type { HeaderExpression, TransformationConfig, TransformConfig } from './config.ts'
import type { TransformationSpec } from './schema.ts'

type TransformSpec = NonNullable<TransformationSpec['request']>
type Half = 'request' | 'response'

const pseudoHeaders: Readonly<Record<Half, readonly string[]>> = {
  request: [':method', ':scheme', ':authority', ':path'],
  response: [':status'],
}

/** Pseudo-headers that a half does not have, and removals of any, are left out with a message. */
export function compile(spec: TransformationSpec): Compiled<TransformationConfig> {
  const problems: PolicyProblem[] = []
  const request = spec.request && compileHalf('request', spec.request, problems)
  const response = spec.response && compileHalf('response', spec.response, problems)
  return { config: { ...(request && { request }), ...(response && { response }) }, problems }
}

function compileHalf(half: Half, spec: TransformSpec, problems: PolicyProblem[]): TransformConfig {
  const leaveOut = (path: string, message: string): [] => {
    problems.push({ path: `${half}.${path}`, message, partial: true })
    return []
  }
  const headers = (list: 'set' | 'add'): HeaderExpression[] =>
    (spec[list] ?? []).flatMap(({ name, value }, at) => {
      const isKnown = !name.startsWith(':') || pseudoHeaders[half].includes(name)
      if (isKnown) return [{ name, expression: value }]
      return leaveOut(`${list}[${at}].name`, `a ${half} has no ${name}; it is ignored`)
    })
  const remove = (spec.remove ?? []).flatMap((name, at) => {
    if (!name.startsWith(':')) return [name]
    return leaveOut(`remove[${at}]`, `${name} cannot be removed; it is ignored`)
  })
  return {
    add: headers('add'),
    set: headers('set'),
    remove,
    ...(spec.body !== undefined && { body: spec.body }),
  }
}
