/** What programs ask of models, and how one knows that they got it. */
import type { Ending, Segment } from '../../support/vendors/segments.ts'
import type { Asked, Seen } from './clients.ts'

export interface Feature {
  readonly name: string
  readonly asked: Asked
  readonly says: readonly Segment[]
  readonly ending?: Ending
  /** Whether the request of the vendor has what was asked for. */
  readonly arrives?: RegExp
  readonly returns: (seen: Seen) => boolean
  /** Whether the results of the tools are sent, and what the vendor then gets. */
  readonly back?: RegExp
}

const text = (...pieces: string[]): Segment => ({ kind: 'text', pieces })
const thought: Segment = { kind: 'thinking', pieces: ['Let me ', 'see.'] }
const call: Segment = { kind: 'tool', pieces: ['{"city":', '"Oslo"}'] }
const hello = [text('Hel', 'lo.')]

/** The tools of `segments.ts` have the number of their segment in their names. */
const called = (seen: Seen, ...names: string[]): boolean =>
  JSON.stringify(seen.calls.map(({ name }) => name)) === JSON.stringify(names) &&
  seen.calls.every(({ input }) => (JSON.parse(input) as { city: string }).city === 'Oslo')

const isHello = (seen: Seen): boolean => seen.text === 'Hello.' && seen.stop === 'end'

const schema = {
  type: 'object',
  properties: { town: { type: 'string' } },
  required: ['town'],
  additionalProperties: false,
}

export const features: readonly Feature[] = [
  { name: 'text', asked: {}, says: hello, returns: isHello },
  {
    name: 'system prompt',
    asked: { system: 'Be brief.' },
    says: hello,
    arrives: /Be brief\./,
    returns: isHello,
  },
  {
    name: 'effort of thinking',
    asked: { effort: 'high' },
    says: hello,
    arrives: /"(reasoning_effort|effort|thinkingLevel|maxReasoningEffort)":"high"/i,
    returns: isHello,
  },
  {
    name: 'thoughts in responses',
    asked: { effort: 'high' },
    says: [thought, ...hello],
    returns: (seen) => seen.thinking === 'Let me see.' && isHello(seen),
  },
  {
    name: 'thoughts of earlier turns',
    asked: { effort: 'high', tools: ['tool_1'] },
    says: [thought, call],
    returns: (seen) => called(seen, 'tool_1'),
    // The signature of the vendor, or the thought itself where there is none.
    back: /Let me see\.|c2ln|ZC1zaWc=/,
  },
  {
    name: 'tools and their results',
    asked: { tools: ['tool_0'] },
    says: [call],
    arrives: /"tool_0"/,
    returns: (seen) => called(seen, 'tool_0'),
    back: /rain tool_0/,
  },
  {
    name: 'several tools at once',
    asked: { tools: ['tool_0', 'tool_1'] },
    says: [call, call],
    arrives: /"tool_1"/,
    returns: (seen) => called(seen, 'tool_0', 'tool_1'),
    back: /rain tool_0.*rain tool_1/s,
  },
  {
    name: 'JSON by a schema',
    asked: { schema },
    says: [text('{"town":', '"Oslo"}')],
    arrives: /town/,
    returns: (seen) => seen.text === '{"town":"Oslo"}',
  },
  {
    name: 'pictures',
    asked: { picture: 'aGVsbG8=' },
    says: hello,
    arrives: /aGVsbG8=/,
    returns: isHello,
  },
  {
    name: 'PDFs',
    asked: { pdf: 'JVBERi0xLjQK' },
    says: hello,
    arrives: /JVBERi0xLjQK/,
    returns: isHello,
  },
  {
    name: 'audio',
    asked: { audio: 'UklGRg==' },
    says: hello,
    arrives: /UklGRg==/,
    returns: isHello,
  },
  {
    name: 'marks for the cache',
    asked: { system: 'Be brief.', isCached: true },
    says: hello,
    arrives: /"cache_control"|"cachePoint"/,
    returns: isHello,
  },
  {
    name: 'cached tokens in usage',
    asked: {},
    says: hello,
    ending: { cached: 7 },
    returns: (seen) => seen.cached === 7,
  },
  {
    name: 'web search',
    asked: { search: true },
    says: hello,
    arrives: /web_search|googleSearch|nova_grounding/,
    returns: isHello,
  },
  {
    name: 'sources of texts',
    asked: {},
    says: [{ ...text('Hel', 'lo.'), source: 'https://example.com/page' }],
    returns: (seen) => seen.sources.join() === 'https://example.com/page',
  },
  {
    name: 'the limit of tokens is reached',
    asked: {},
    says: hello,
    ending: { reason: 'length' },
    returns: (seen) => seen.text === 'Hello.' && seen.stop === 'length',
  },
  {
    name: 'the vendor filters the response',
    asked: {},
    says: hello,
    ending: { reason: 'filter' },
    returns: (seen) => seen.stop === 'filter',
  },
]
