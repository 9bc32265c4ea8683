/** Clients that pay: official SDKs, and a light one for most requests. */
import { Agent } from 'node:http'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { send } from '../../support/http-client.ts'
import { maxTokens, models, type Payer, payerText } from './vendor.ts'

/** `refused`: the budget is exhausted. `failed`: anything that a client tries again. */
export type Answer = 'paid' | 'refused' | 'failed'

export interface Target extends Payer {
  readonly address: string
  readonly port: number
  readonly isStreamed: boolean
}

export type Ask = (target: Target) => Promise<Answer>

/** The routes of the run, one for each vendor; requests name theirs in the header `x-route`. */
export const routes = { openai: 'openai', anthropic: 'anthropic' } as const

const agent = new Agent({ keepAlive: true, maxSockets: 256 })
const messages = [
  { role: 'user' as const, content: 'How are you today, and what is new in the books?' },
]
const isExhausted = (text: string) => text.includes(' is exhausted')

/** A request that no SDK wraps. */
const light: Ask = async (target) => {
  const { address, port, team, isStreamed } = target
  const body = JSON.stringify({
    model: models.openai,
    messages,
    max_tokens: maxTokens,
    user: payerText(target),
    ...(isStreamed && { stream: true }),
  })
  const headers = {
    'x-team': team,
    'x-route': routes.openai,
    'content-type': 'application/json',
    'content-length': `${body.length}`,
  }
  const path = '/v1/chat/completions'
  const answer = await send(port, { method: 'POST', path, address, headers, body, agent })
  if (answer.status === 200) return 'paid'
  return isExhausted(answer.body) ? 'refused' : 'failed'
}

const sdkOptions = ({ address, port, team }: Target, route: string) => ({
  baseURL: `http://${address}:${port}`,
  apiKey: 'client-key',
  timeout: 60_000,
  // A retry could reach another run of the proxy than the one that the request names.
  maxRetries: 0,
  defaultHeaders: { 'x-team': team, 'x-route': route },
})

const openai: Ask = async (target) => {
  const { baseURL, ...options } = sdkOptions(target, routes.openai)
  const client = new OpenAI({ ...options, baseURL: `${baseURL}/v1` })
  const body = { model: models.openai, messages, max_tokens: maxTokens, user: payerText(target) }
  if (target.isStreamed) {
    const stream = await client.chat.completions.create({ ...body, stream: true })
    for await (const _ of stream);
  } else await client.chat.completions.create(body)
  return 'paid'
}

const anthropic: Ask = async (target) => {
  const client = new Anthropic(sdkOptions(target, routes.anthropic))
  const metadata = { user_id: payerText(target) }
  const body = { model: models.anthropic, messages, max_tokens: maxTokens, metadata }
  if (target.isStreamed) {
    for await (const _ of await client.messages.create({ ...body, stream: true }));
  } else await client.messages.create(body)
  return 'paid'
}

/** Each SDK sends one request of so many. */
const sdkEvery = 20

/** Sends a request by the client whose turn it is. Rejects only for defects of the run. */
export async function ask(target: Target, turn: number): Promise<Answer> {
  const client = turn % sdkEvery === 0 ? openai : turn % sdkEvery === 1 ? anthropic : light
  try {
    return await client(target)
  } catch (error) {
    return error instanceof Error && isExhausted(error.message) ? 'refused' : 'failed'
  }
}

export const closeClients = (): void => agent.destroy()
