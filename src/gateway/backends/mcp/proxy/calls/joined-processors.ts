/** Processors of requests that concern no single item, such as lists: they see a request once for all targets. */
import { unshared } from '../../lists.ts'
import type { McpRequest } from '../../message.ts'
import { readResponse } from '../../message.ts'
import type { ProtocolEra } from '../../methods.ts'
import type { McpExchange } from '../exchange/mcp-exchange.ts'
import type { ClientResponse } from '../exchange/message-stream.ts'
import { type ProcessorChain, processRequest, processResponse } from './run-processors.ts'

const none: readonly ProcessorChain[] = []

/** The processors of all targets for a method. Targets with the same processors have one chain. */
export function chainsFor(
  exchange: McpExchange,
  era: ProtocolEra,
  method: string,
): readonly ProcessorChain[] {
  let found: Map<string, ProcessorChain & { readonly services: string[] }> | undefined
  for (const entry of exchange.backend.targets) {
    const policy = exchange.callPolicyOf(entry)
    if (policy === undefined || !policy.hasProcessorsFor(method)) continue
    const { processors, processorKey } = policy
    found ??= new Map()
    const known = found.get(processorKey)
    if (known !== undefined) known.services.push(entry.target.name)
    else {
      const services = [entry.target.name]
      found.set(processorKey, { exchange, era, processors, entry, services })
    }
  }
  return found === undefined ? none : [...found.values()]
}

/** Serves a request between its processors. Rejects as `serve` does. */
export async function serveChecked(
  chains: readonly ProcessorChain[],
  request: McpRequest,
  serve: (request: McpRequest) => Promise<ClientResponse> | ClientResponse,
): Promise<ClientResponse> {
  const checked = await checkRequest(chains, request)
  if (!('kind' in checked)) return checked
  return checkResponse(chains, request, await serve(checked))
}

/** Returns the request after the processors, or the response if one refuses it. */
export async function checkRequest(
  chains: readonly ProcessorChain[],
  request: McpRequest,
): Promise<McpRequest | ClientResponse> {
  let current = request
  for (const chain of chains) {
    const checked = await processRequest(chain, current)
    if (!('kind' in checked)) return checked
    current = checked
  }
  return current
}

/** Returns the response after the processors, or a refusal. */
export async function checkResponse(
  chains: readonly ProcessorChain[],
  request: McpRequest,
  answer: ClientResponse,
): Promise<ClientResponse> {
  const response = readResponse(answer.text)
  if (response === undefined) return answer
  let current = response
  for (const chain of chains) {
    const checked = await processResponse(chain, request, current)
    if (!('kind' in checked)) return checked
    current = checked
  }
  const own = unshared(current)
  return own === response ? answer : { ...answer, text: own.text, bytes: undefined }
}
