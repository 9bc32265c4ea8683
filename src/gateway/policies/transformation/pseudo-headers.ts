import type { CelResult } from '../../../engines/cel/index.ts'
import { GatewayError } from '../../../ground/errors/index.ts'
import type { Exchange } from '../../../ground/exchange/exchange.ts'

/** Sets `:method`, `:scheme`, `:authority` or `:path` (RFC 9113 8.3). Invalid values are ignored. */
export function setRequestPart({ request }: Exchange, name: string, text: string): void {
  try {
    if (name === ':method') request.method = text
    else if (name === ':authority') request.authority = text
    else if (name === ':scheme') {
      if (text === 'http' || text === 'https') request.scheme = text
    } else if (name === ':path') {
      const mark = text.indexOf('?')
      const path = mark < 0 ? text : text.slice(0, mark)
      const query = mark < 0 ? undefined : text.slice(mark + 1)
      setTarget(request, path, query)
    }
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'filter_failed') throw error
  }
}

/** Sets path and query together, or neither, so that parts of two targets are never combined. */
function setTarget(request: Exchange['request'], path: string, query: string | undefined): void {
  const before = request.query
  request.query = query
  try {
    request.path = path
  } catch (error) {
    request.query = before
    throw error
  }
}

/** Sets `:status` to a number or its digits, from 200 to 599. Other values are ignored. */
export function setStatus({ response }: Exchange, result: CelResult): void {
  const digits = typeof result === 'string' && /^[0-9]{3}$/.test(result)
  const status =
    digits || typeof result === 'bigint' || typeof result === 'number' ? Number(result) : 0
  const isStatus = Number.isInteger(status) && status >= 200 && status <= 599
  if (response !== undefined && isStatus) response.status = status
}
