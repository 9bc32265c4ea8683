/** `sluice explain`, by what is asked for. */
import { explain } from './explain.ts'
import { explainCondition } from './explain-condition.ts'
import { explainProviders, type ProviderOptions } from './explain-providers.ts'
import { explainRequest, type RequestOptions } from './explain-request.ts'
import { type Output, type OutputFormat, UsageError } from './output.ts'

/** Shorter names of kinds. */
const aliases: Readonly<Record<string, string>> = {
  backend: 'GatewayBackend',
  policy: 'GatewayPolicy',
  route: 'HTTPRoute',
}

/**
 * An object is `KIND NAMESPACE/NAME` or `KIND/NAMESPACE/NAME`, as one likes.
 * @throws UsageError
 */
export function explainAny(
  what: string,
  names: readonly string[],
  options: RequestOptions & ProviderOptions,
  format: OutputFormat,
  output: Output,
): Promise<number> {
  if (what === 'request') {
    if (names.length > 0) throw new UsageError('explain request takes options only')
    return explainRequest(options, format, output)
  }
  if (what === 'providers') {
    if (names.length > 1) throw new UsageError('explain providers takes one NAMESPACE/NAME')
    return explainProviders(names[0], options, format, output)
  }
  const path = names.join('/')
  if (what === 'condition') {
    if (path === '') throw new UsageError('explain condition needs KIND/NAMESPACE/NAME')
    return explainCondition(path, options, format, output)
  }
  const [kind = '', ...rest] = [what, ...names].join('/').split('/')
  if (rest.length === 0) throw new UsageError(`explain ${what} needs a name: KIND NAMESPACE/NAME`)
  return explain(aliases[kind] ?? kind, rest.join('/'), options, format, output)
}
