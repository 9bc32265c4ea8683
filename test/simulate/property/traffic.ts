/** Random requests for random configurations. */
import type { TestRequest } from '../../support/http-client.ts'
import type { Choices } from './choices.ts'
import { hosts } from './configurations.ts'

const chat = (content: string) =>
  JSON.stringify({ model: 'm-1', messages: [{ role: 'user', content }] })

const paths = [
  '/',
  '/one',
  '/one/two',
  '/one/',
  '/three',
  '/x/three',
  '/api/v1',
  '/none',
  '/a%2e/..//one',
]
const queries = ['', '', '?x=1', '?x=2&x=1', '?access_token=secret&x=1']

/** Credentials of every kind, valid and not. */
export interface Tokens {
  readonly good: string
  readonly bad: string
}

export function randomRequest(choices: Choices, id: string, tokens: Tokens): TestRequest {
  if (choices.chance(0.15)) return modelRequest(choices, id, tokens)
  const method = choices.one(['GET', 'GET', 'GET', 'POST', 'PUT', 'OPTIONS', 'DELETE'])
  const hasBody = method === 'POST' || method === 'PUT'
  return {
    method,
    host: choices.chance(0.95) ? choices.one(hosts) : 'unknown.test',
    path: choices.one(paths) + choices.one(queries),
    headers: { 'x-request-id': id, ...randomHeaders(choices, tokens) },
    ...(hasBody && choices.chance(0.7) && { body: choices.one(['open sesame', 'closed']) }),
  }
}

function modelRequest(choices: Choices, id: string, tokens: Tokens): TestRequest {
  return {
    method: 'POST',
    host: choices.one(hosts),
    path: '/v1/chat/completions',
    headers: {
      'x-request-id': id,
      'content-type': 'application/json',
      ...randomHeaders(choices, tokens),
    },
    body: choices.one([chat('hello'), chat('a forbidden word'), '{']),
  }
}

function randomHeaders(choices: Choices, { good, bad }: Tokens): Record<string, string> {
  const credentials = [
    `Bearer ${good}`,
    `Bearer ${bad}`,
    'Bearer key-of-ann',
    'Bearer key-of-bob',
    'Bearer nonsense',
    `Basic ${Buffer.from('ann:pw').toString('base64')}`,
    `Basic ${Buffer.from('ann:no').toString('base64')}`,
  ]
  const possible: readonly (readonly [string, number, readonly string[]])[] = [
    ['authorization', 0.6, credentials],
    ['x-team', 0.6, ['a', 'b', 'gold', 'other']],
    ['x-version', 0.4, ['2', '3']],
    ['x-flag', 0.3, ['', 'gold', 'a']],
    ['user-agent', 0.5, ['test/1', 'other']],
    ['origin', 0.4, ['https://good.example.com', 'https://x.example.net', 'https://evil.test']],
    ['sec-fetch-site', 0.2, ['same-origin', 'cross-site']],
    ['access-control-request-method', 0.3, ['PUT']],
    ['x-auth', 0.5, ['allow', 'refuse']],
    ['cookie', 0.2, ['session=1']],
  ]
  return Object.fromEntries(
    possible.flatMap(([name, probability, values]) =>
      choices.chance(probability) ? [[name, choices.one(values)] as const] : [],
    ),
  )
}
