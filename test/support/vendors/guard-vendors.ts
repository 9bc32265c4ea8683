/** Strict simulators of the services that guards ask, by their documented formats. */
import type { ServerResponse } from 'node:http'
import { type SigningKeys, signatureProblem } from './aws-signature.ts'
import { json, type Refusal, startVendor, type Vendor, type VendorCall } from './vendor.ts'

type Fields = Readonly<Record<string, unknown>>
const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''
const isTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string')

/** The names of a body that are not among the known ones. */
const unknownIn = (body: Fields, ...known: readonly string[]) =>
  Object.keys(body).filter((name) => !known.includes(name))

const has = (text: string) => ({
  bad: text.includes('forbidden'),
  mail: /[a-z]+@example\.com/.test(text),
})
export const mails = /[a-z]+@example\.com/g

interface Simulated {
  readonly path: RegExp
  check(body: Fields, call: VendorCall): Refusal
  answer(body: Fields, call: VendorCall): object
}

const bedrock: Simulated = {
  path: /^\/guardrail\/g-1\/version\/3\/apply$/,
  check(body) {
    if (unknownIn(body, 'source', 'content', 'outputScope').length > 0) return 'unknown member'
    if (body.source !== 'INPUT' && body.source !== 'OUTPUT') return 'source'
    const { content } = body
    if (!Array.isArray(content) || content.length === 0) return 'content'
    const texts = content.map((part: Fields) => (part.text as Fields | undefined)?.text)
    if (!texts.every(isText)) return 'content.text.text'
    return texts.join('').length > 25_000 ? 'more than 25 text units' : undefined
  },
  answer({ content }) {
    const texts = (content as Fields[]).map((part) => String((part.text as Fields).text))
    const found = has(texts.join('\n'))
    if (!found.bad && !found.mail) {
      return { action: 'NONE', outputs: [], assessments: [{ invocationMetrics: {} }], usage: {} }
    }
    const outputs = texts.map((text) => ({ text: text.replace(mails, '{EMAIL}') }))
    const topics = [{ name: 'secrets', type: 'DENY', action: 'BLOCKED', detected: true }]
    const piiEntities = [{ match: 'x', type: 'EMAIL', action: 'ANONYMIZED', detected: true }]
    const assessment = {
      ...(found.bad && { topicPolicy: { topics } }),
      ...(found.mail && { sensitiveInformationPolicy: { piiEntities, regexes: [] } }),
    }
    return {
      action: 'GUARDRAIL_INTERVENED',
      outputs: found.bad ? [{ text: 'Sorry.' }] : outputs,
      assessments: [assessment],
      usage: {},
    }
  },
}

const modelArmor: Simulated = {
  path: /^\/v1\/projects\/p-1\/locations\/europe-west4\/templates\/t-1:sanitize(UserPrompt|ModelResponse)$/,
  check(body, { path }) {
    const name = path.endsWith('UserPrompt') ? 'userPromptData' : 'modelResponseData'
    const data = body[name]
    if (unknownIn(body, name).length > 0 || !isFields(data)) return `needs only ${name}`
    return isText(data.text) && data.text.length <= 10_000 ? undefined : 'text'
  },
  answer(body, { path }) {
    const isPrompt = path.endsWith('UserPrompt')
    const text = String((body[isPrompt ? 'userPromptData' : 'modelResponseData'] as Fields).text)
    const { bad, mail } = has(text)
    const state = (isMatch: boolean) => ({
      executionState: 'EXECUTION_SUCCESS',
      matchState: isMatch ? 'MATCH_FOUND' : 'NO_MATCH_FOUND',
    })
    const data = mail ? { data: { text: text.replace(mails, '[EMAIL_ADDRESS]') } } : {}
    const filters = {
      rai: { raiFilterResult: state(bad) },
      pi_and_jailbreak: { piAndJailbreakFilterResult: state(false) },
      csam: { csamFilterFilterResult: state(false) },
      sdp: { sdpFilterResult: { deidentifyResult: { ...state(mail), ...data } } },
    }
    return {
      sanitizationResult: {
        filterMatchState: state(bad || mail).matchState,
        invocationResult: 'SUCCESS',
        // Some templates give a list.
        filterResults: isPrompt ? filters : Object.values(filters),
      },
    }
  },
}

const azure: Simulated = {
  path: /^\/contentsafety\/text:(analyze|shieldPrompt)\?api-version=2024-09-01$/,
  check(body, { path }) {
    if (path.includes(':analyze')) {
      const known = ['text', 'categories', 'blocklistNames', 'haltOnBlocklistHit', 'outputType']
      if (unknownIn(body, ...known).length > 0) return 'unknown member'
      if (!isText(body.text) || [...body.text].length > 10_000) return 'text'
      return isTexts(body.blocklistNames) ? undefined : 'blocklistNames'
    }
    if (unknownIn(body, 'userPrompt', 'documents').length > 0) return 'unknown member'
    const { userPrompt, documents } = body
    if (typeof userPrompt !== 'string' || !isTexts(documents)) return 'userPrompt or documents'
    const length = [userPrompt, ...documents].join('').length
    return documents.length > 5 || length > 10_000 || length === 0 ? 'length' : undefined
  },
  answer({ text, userPrompt, documents }, { path }) {
    if (path.includes(':analyze')) {
      const severity = has(String(text)).bad ? 4 : 0
      return {
        blocklistsMatch: [],
        categoriesAnalysis: [
          { category: 'Hate', severity: 0 },
          { category: 'Violence', severity },
        ],
      }
    }
    const attacks = (value: unknown) => ({ attackDetected: String(value).includes('jailbreak') })
    return {
      userPromptAnalysis: attacks(userPrompt),
      documentsAnalysis: (documents as string[]).map(attacks),
    }
  },
}

const presidio: Simulated = {
  path: /^\/analyze$/,
  check(body) {
    const known = ['text', 'language', 'entities', 'score_threshold']
    if (unknownIn(body, ...known).length > 0) return 'unknown member'
    return isText(body.text) && body.language === 'en' ? undefined : 'text or language'
  },
  answer: ({ text }) =>
    Array.from(String(text).matchAll(mails), ({ 0: found, index }) => {
      const start = [...String(text).slice(0, index)].length
      return { entity_type: 'EMAIL_ADDRESS', start, end: start + found.length, score: 1 }
    }),
}

const moderation: Simulated = {
  path: /^\/v1\/moderations$/,
  check: ({ input, model }) =>
    isTexts(input) && input.length > 0 && isText(model) ? undefined : 'input or model',
  answer: ({ input, model }) => ({
    id: 'modr-1',
    model,
    results: (input as string[]).map((text) => ({
      flagged: has(text).bad,
      categories: { violence: has(text).bad, hate: false },
      category_scores: {},
    })),
  }),
}

const judge: Simulated = {
  path: /^\/v1\/chat\/completions$/,
  check({ messages, model, response_format: format }) {
    if (!Array.isArray(messages) || !isText(model)) return 'messages or model'
    if (model !== 'judge-1') return undefined
    return (format as Fields | undefined)?.type === 'json_schema' ? undefined : 'response_format'
  },
  answer({ messages, model }) {
    const { bad } = has(String((messages as Fields[]).at(-1)?.content))
    const contents: Readonly<Record<string, string>> = {
      'judge-1': JSON.stringify({
        verdict: bad ? 'reject' : 'allow',
        category: 'crime',
        reason: '',
      }),
      'llama-guard': bad ? '\n\nunsafe\nS1,S9' : 'safe',
      nemoguard: JSON.stringify({
        'User Safety': bad ? 'unsafe' : 'safe',
        'Safety Categories': 'S3',
      }),
    }
    const message = { role: 'assistant', content: contents[String(model)] }
    return { choices: [{ index: 0, message, finish_reason: 'stop' }] }
  },
}

const services = { bedrock, modelArmor, azure, presidio, moderation, judge }
type Service = keyof typeof services

const refusals = (message: string) => ({ message })

/** Starts a service. If `keys` are given, calls must be signed with them. */
export function startGuardVendor(
  name: Service,
  { keys, tls }: { keys?: SigningKeys; tls?: { certificate: string; key: string } } = {},
): Promise<Vendor> {
  const { path, check, answer } = services[name]
  const checked = async (call: VendorCall): Promise<Refusal> => {
    if (call.method !== 'POST' || !path.test(call.path)) return `${call.method} ${call.path}`
    if (call.headers['content-type'] !== 'application/json') return 'content-type'
    const scope = { region: 'eu-west-1', service: 'bedrock' }
    return (keys && (await signatureProblem(call, keys, scope))) ?? check(call.body, call)
  }
  const answers = (call: VendorCall, response: ServerResponse) =>
    json(response, 200, answer(call.body, call))
  return startVendor(checked, answers, refusals, 0, tls)
}
