/** Reads the rules of Traefik's routers, such as Host(`a.example`) && PathPrefix(`/b`). */

import type { Fields } from '../conversion.ts'

/** What one alternative of a rule matches. */
export interface Alternative {
  /** Undefined: any host. */
  readonly host?: string
  /** The path of an HTTPRoute match. Undefined: any path. */
  readonly path?: { readonly type: string; readonly value: string }
  readonly method?: string
  readonly headers: readonly Fields[]
  readonly queryParams: readonly Fields[]
}

const anything: Alternative = { headers: [], queryParams: [] }

/** Thrown for rules that an HTTPRoute cannot express, with the reason. */
class RuleError extends Error {}

const maxAlternatives = 64
const maxDepth = 32

const tokens = /\s*(?:([A-Za-z]+)\s*\(|(&&|\|\||[!()])|`([^`]*)`|"((?:[^"\\]|\\.)*)"|(,))/y

interface Token {
  readonly type: 'call' | 'text' | 'sign'
  readonly text: string
}

function tokensOf(rule: string): Token[] {
  const found: Token[] = []
  tokens.lastIndex = 0
  while (tokens.lastIndex < rule.trimEnd().length) {
    const match = tokens.exec(rule)
    if (match === null) throw new RuleError('is not a rule of Traefik')
    const [, call, sign, raw, quoted, comma] = match
    if (call !== undefined) found.push({ type: 'call', text: call })
    else if (sign !== undefined || comma !== undefined) {
      found.push({ type: 'sign', text: sign ?? ',' })
    } else found.push({ type: 'text', text: raw ?? (quoted ?? '').replace(/\\(.)/g, '$1') })
  }
  return found
}

/** Returns the alternatives of a rule, or why an HTTPRoute cannot express it. */
export function alternativesOf(rule: string): readonly Alternative[] | string {
  try {
    const reader = new RuleReader(tokensOf(rule))
    return reader.read()
  } catch (error) {
    if (error instanceof RuleError) return error.message
    throw error
  }
}

class RuleReader {
  readonly #tokens: readonly Token[]
  #at = 0

  constructor(all: readonly Token[]) {
    this.#tokens = all
  }

  read(): readonly Alternative[] {
    const found = this.#disjunction(0)
    if (this.#at < this.#tokens.length) throw new RuleError('is not a rule of Traefik')
    return found
  }

  #accepts(sign: string): boolean {
    const token = this.#tokens[this.#at]
    const fits = token?.type === 'sign' && token.text === sign
    if (fits) this.#at++
    return fits
  }

  #disjunction(depth: number): readonly Alternative[] {
    if (depth > maxDepth) throw new RuleError('is nested too deep')
    const found = [...this.#conjunction(depth)]
    while (this.#accepts('||')) found.push(...this.#conjunction(depth))
    return bounded(found)
  }

  #conjunction(depth: number): readonly Alternative[] {
    let found = this.#term(depth)
    while (this.#accepts('&&')) {
      const others = this.#term(depth)
      found = bounded(found.flatMap((left) => others.flatMap((right) => joined(left, right))))
    }
    return found
  }

  #term(depth: number): readonly Alternative[] {
    if (this.#accepts('!')) throw new RuleError('`!` has no counterpart in matches')
    if (this.#accepts('(')) {
      const found = this.#disjunction(depth + 1)
      if (!this.#accepts(')')) throw new RuleError('is not a rule of Traefik')
      return found
    }
    const token = this.#tokens[this.#at++]
    if (token?.type !== 'call') throw new RuleError('is not a rule of Traefik')
    return matcher(token.text, this.#arguments())
  }

  #arguments(): string[] {
    const found: string[] = []
    for (;;) {
      const token = this.#tokens[this.#at++]
      if (token === undefined) throw new RuleError('is not a rule of Traefik')
      if (token.type === 'text') found.push(token.text)
      else if (token.text === ')') return found
      else if (token.text !== ',') throw new RuleError('is not a rule of Traefik')
    }
  }
}

function bounded(found: readonly Alternative[]): readonly Alternative[] {
  if (found.length > maxAlternatives) {
    throw new RuleError(`has more than ${maxAlternatives} alternatives`)
  }
  return found
}

/** Returns the alternative that requires both; none if no request can match both. */
function joined(left: Alternative, right: Alternative): Alternative[] {
  const areDisjoint =
    (left.host !== undefined && right.host !== undefined && left.host !== right.host) ||
    (left.method !== undefined && right.method !== undefined && left.method !== right.method)
  if (areDisjoint) return []
  if (left.path !== undefined && right.path !== undefined) {
    throw new RuleError('a match can have only one condition for the path')
  }
  return [
    {
      ...left,
      ...right,
      headers: [...left.headers, ...right.headers],
      queryParams: [...left.queryParams, ...right.queryParams],
    },
  ]
}

function matcher(name: string, values: readonly string[]): readonly Alternative[] {
  const paths = (type: string, list = values) =>
    list.map((value) => ({ ...anything, path: { type, value } }))
  const [first = '', second = ''] = values
  const pair = (type: string) => [{ type, name: first, value: second }]
  switch (name) {
    case 'Host':
    case 'HostHeader':
      return values.map((host) => ({ ...anything, host: host.toLowerCase() }))
    case 'Path':
      return paths('Exact')
    case 'PathPrefix':
      return paths('PathPrefix')
    case 'PathRegexp':
      return paths('RegularExpression', values.map(wholePattern))
    case 'Method':
      return values.map((method) => ({ ...anything, method: method.toUpperCase() }))
    case 'Header':
    case 'Headers':
      return [{ ...anything, headers: pair('Exact') }]
    case 'HeaderRegexp':
    case 'HeadersRegexp':
      return [
        {
          ...anything,
          headers: [{ ...pair('RegularExpression')[0], value: wholePattern(second) }],
        },
      ]
    case 'Query':
      return [{ ...anything, queryParams: pair('Exact') }]
    default:
      throw new RuleError(`${name} has no counterpart in matches`)
  }
}

/** Converts a pattern, which Traefik searches in the value, to one that matches the whole value. */
const wholePattern = (pattern: string): string => {
  // The anchors of one alternative say nothing about the others.
  if (pattern.includes('|')) return `.*(?:${pattern}).*`
  const start = pattern.startsWith('^') ? pattern.slice(1) : `.*${pattern}`
  const isAnchored = /(?:^|[^\\])(?:\\\\)*\$$/.test(start)
  return isAnchored ? start.slice(0, -1) : `${start}.*`
}
