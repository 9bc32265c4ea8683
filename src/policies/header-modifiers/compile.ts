import { headerProblems } from '../../model/header-changes.ts'
import type { HeaderChanges, HeaderValue } from '../../model/resources.ts'
import type { Compiled, PolicyProblem } from '../define.ts'
import type { HeaderModifiersConfig } from './config.ts'
import type { HeaderModifiersSpec } from './schema.ts'

type HeaderFilterSpec = NonNullable<HeaderModifiersSpec['request']>

/** Values that no HTTP field can carry are problems: the schema checks names and bounds only. */
export function compile(spec: HeaderModifiersSpec): Compiled<HeaderModifiersConfig> {
  const request = spec.request && changesOf(spec.request)
  const response = spec.response && changesOf(spec.response)
  const problems = [...problemsOf('request', request), ...problemsOf('response', response)]
  return problems.length > 0 ? { problems } : { config: { request, response }, problems }
}

function problemsOf(half: string, changes: HeaderChanges | undefined): PolicyProblem[] {
  if (changes === undefined) return []
  return headerProblems(changes).map(({ path, message }) => ({ path: `${half}.${path}`, message }))
}

function changesOf(filter: HeaderFilterSpec): HeaderChanges {
  return {
    set: filter.set?.map(pair) ?? [],
    add: filter.add?.map(pair) ?? [],
    remove: filter.remove ?? [],
  }
}

const pair = ({ name, value }: HeaderValue): HeaderValue => ({ name, value })
