/** Chats with the official SDKs, whole and streamed. */
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { tagsIn } from '../../support/tagged-upstream.ts'
import type { Outcome } from '../ledger.ts'
import { models } from '../routes.ts'
import { answerText, canary } from '../vendors.ts'
import { entranceOf, type Traffic, type TrafficContext } from './context.ts'

type Message = OpenAI.ChatCompletionMessageParam

/** The tag, and a canary in one of the messages. */
function conversation(
  { random }: TrafficContext,
  tag: string,
): { system: string; texts: string[] } {
  const texts = [`Hello ${tag}`, 'Hello.', `Who is it? ${'x'.repeat(random.below(400))}`]
  const place = random.below(texts.length + 1)
  const secret = `Write to ${canary(tag)}.`
  if (place < texts.length) texts[place] = `${texts[place]} ${secret}`
  return { system: place === texts.length ? secret : 'Be brief.', texts }
}

/** Judges what the client got. */
function judge(text: string, tag: string, model: string): Outcome | undefined {
  const foreign = tagsIn(text).filter((found) => found !== tag)
  const wrong = (invariant: Outcome['invariant'] & string, what: string): Outcome => ({
    kind: 'wrong',
    invariant,
    text: `${model}: ${what}`,
    received: text,
  })
  if (foreign.length > 0) return wrong('isolation', `the client receives ${foreign.join(' ')}`)
  if (text.includes('@')) return wrong('protection', 'the client receives what a guard masks')
  const expected = answerText(tag, model).replace(canary(tag), '<EMAIL_ADDRESS>')
  if (text !== expected) return wrong('framing', `the client receives other text than ${expected}`)
  return undefined
}

const options = (context: TrafficContext, base: string, suffix: string) => {
  const { port, ways } = entranceOf(context)
  const baseURL = `http://127.0.0.1:${port}/${base}${suffix}`
  return { client: { baseURL, apiKey: 'client-key', maxRetries: 0 }, ways }
}

/** After how many pieces a client of a stream goes away; undefined for one that stays. */
const patienceOf = ({ random }: TrafficContext): number | undefined =>
  random.oneIn(12) ? random.below(6) : undefined

async function* upTo<Item>(items: AsyncIterable<Item>, count: number | undefined) {
  let left = count ?? Number.POSITIVE_INFINITY
  for await (const item of items) {
    if (left-- <= 0) return
    yield item
  }
}

export const completions: Traffic = async (context) => {
  const { ledger, accounts, random } = context
  const tag = ledger.nextTag()
  const base = random.pick(models.completions)
  const { client, ways } = options(context, base, '/v1')
  const openai = new OpenAI(client)
  const { system, texts } = conversation(context, tag)
  const [first = '', answer = '', last = ''] = texts
  const messages: Message[] = [
    { role: 'system', content: system },
    { role: 'user', content: random.oneIn(2) ? first : [{ type: 'text', text: first }] },
    { role: 'assistant', content: answer },
    { role: 'user', content: last },
  ]
  const model = base
  const headers = { 'x-tag': tag }
  const isStream = random.oneIn(2)
  await ledger.exchange(`openai ${isStream ? 'stream' : 'whole'}`, ways, tag, async () => {
    if (!isStream) {
      const whole = await openai.chat.completions.create({ model, messages }, { headers })
      accounts.expect(tag, 200, true)
      return judge(whole.choices[0]?.message.content ?? '', tag, model)
    }
    const patience = patienceOf(context)
    const stream = await openai.chat.completions.create(
      { model, messages, stream: true },
      { headers },
    )
    let text = ''
    for await (const { choices } of upTo(stream, patience)) text += choices[0]?.delta.content ?? ''
    if (patience !== undefined) return undefined
    accounts.expect(tag, 200, true)
    return judge(text, tag, model)
  })
}

export const messages: Traffic = async (context) => {
  const { ledger, accounts, random } = context
  const tag = ledger.nextTag()
  const base = random.pick(models.messages)
  const { client, ways } = options(context, base, '')
  const anthropic = new Anthropic(client)
  const { system, texts } = conversation(context, tag)
  const [first = '', answer = '', last = ''] = texts
  const model = base.startsWith('masked') ? base : 'plain-messages'
  const asked = {
    model,
    max_tokens: 100,
    system,
    messages: [
      { role: 'user' as const, content: first },
      { role: 'assistant' as const, content: [{ type: 'text' as const, text: answer }] },
      { role: 'user' as const, content: last },
    ],
  }
  const headers = { 'x-tag': tag }
  const isStream = random.oneIn(2)
  await ledger.exchange(`anthropic ${isStream ? 'stream' : 'whole'}`, ways, tag, async () => {
    let text = ''
    if (isStream) {
      const patience = patienceOf(context)
      const stream = await anthropic.messages.create({ ...asked, stream: true }, { headers })
      for await (const event of upTo(stream, patience)) {
        if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') {
          text += event.delta.text
        }
      }
      if (patience !== undefined) return undefined
    } else {
      const { content } = await anthropic.messages.create(asked, { headers })
      for (const block of content) if (block.type === 'text') text += block.text
    }
    accounts.expect(tag, 200, true)
    return judge(text, tag, model)
  })
}
