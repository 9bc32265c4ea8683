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

/** @throws UsageError */
export function explainAny(
  what: string,
  name: string | undefined,
  options: RequestOptions & ProviderOptions,
  format: OutputFormat,
  output: Output,
): Promise<number> {
  if (what === 'request') {
    if (name !== undefined) throw new UsageError('explain request takes options only')
    return explainRequest(options, format, output)
  }
  if (what === 'providers') return explainProviders(name, options, format, output)
  if (name === undefined) throw new UsageError(`explain ${what} needs a name`)
  if (what === 'condition') return explainCondition(name, options, format, output)
  return explain(aliases[what] ?? what, name, options, format, output)
}
