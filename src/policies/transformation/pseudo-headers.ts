/** Parts of a message that are no fields (RFC 9113 8.3). What cannot be one changes nothing. */
import type { CelResult } from '../../cel/index.ts'
import { GatewayError } from '../../errors/index.ts'
import type { Exchange } from '../../exchange/exchange.ts'

/** Sets `:method`, `:scheme`, `:authority` or `:path`. */
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

/** Both or neither: the path of one target with the query of another is nobody's. */
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

/** `:status`: an int or its digits, 200 to 599. */
export function setStatus({ response }: Exchange, result: CelResult): void {
  const digits = typeof result === 'string' && /^[0-9]{3}$/.test(result)
  const status =
    digits || typeof result === 'bigint' || typeof result === 'number' ? Number(result) : 0
  const isStatus = Number.isInteger(status) && status >= 200 && status <= 599
  if (response !== undefined && isStatus) response.status = status
}
