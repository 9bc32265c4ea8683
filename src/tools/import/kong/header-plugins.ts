/** Converts Kong's plugins that change headers. */
import type { Fields } from '../conversion.ts'
import type { SourceField } from '../field.ts'
import { quote } from '../targets.ts'
import type { PluginReader, PluginScene } from './plugin.ts'

interface Header {
  readonly name: string
  readonly value: string
}

/** Headers in the form `name:value`. Templates of Kong are reported. */
function headersOf(field: SourceField): Header[] {
  return field.items().flatMap((item) => {
    const text = item.text() ?? ''
    const colon = text.indexOf(':')
    if (colon < 1 || text.includes('$(')) {
      item.report('lost', 'is not name:value with a constant value')
      return []
    }
    return [
      { name: text.slice(0, colon).trim().toLowerCase(), value: text.slice(colon + 1).trim() },
    ]
  })
}

const namesOf = (field: SourceField): string[] => field.texts().map((name) => name.trim())

/** `add` sets a header that is missing, `replace` one that is there. */
const ifMissing = (side: string, { name, value }: Header): Fields => {
  return { name, value: `default(${side}.headers[${quote(name)}], ${quote(value)})` }
}
const ifPresent = (side: string, { name, value }: Header): Fields => {
  return { name, value: `${quote(name)} in ${side}.headers ? ${quote(value)} : fail()` }
}

const transformer =
  (side: 'request' | 'response'): PluginReader =>
  (config, { plan }) => {
    const headers = (action: string) => config.at(action, 'headers')
    const { remove, add } = side === 'request' ? plan.requestHeaders : plan.responseHeaders
    const computed = side === 'request' ? plan.computedRequest : plan.computedResponse
    remove.push(...namesOf(headers('remove')))
    computed.push(
      ...headersOf(headers('add')).map((header) => ifMissing(side, header)),
      ...headersOf(headers('replace')).map((header) => ifPresent(side, header)),
    )
    add.push(...headersOf(headers('append')))
  }

function correlationId(config: SourceField, { plan }: PluginScene): void {
  config.ignore('generator')
  const name = (config.text('header_name') ?? 'Kong-Request-ID').toLowerCase()
  plan.computedRequest.push({ name, value: `default(request.headers[${quote(name)}], uuid())` })
  if (config.flag('echo_downstream') === true) {
    plan.computedResponse.push({ name, value: `request.headers[${quote(name)}]` })
  }
}

export const headerPlugins: Readonly<Record<string, PluginReader>> = {
  'correlation-id': correlationId,
  'request-transformer': transformer('request'),
  'response-transformer': transformer('response'),
}
