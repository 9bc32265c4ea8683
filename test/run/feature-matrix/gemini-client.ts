/** The official SDK of the Gemini API as a client of the matrix. */
import {
  type GenerateContentParameters,
  type GenerateContentResponse,
  GoogleGenAI,
  type Part,
} from '@google/genai'
import type { Asked, Client, Seen } from './clients.ts'
import { cityTool, question } from './question.ts'

const stops: Readonly<Record<string, Seen['stop']>> = {
  STOP: 'end',
  MAX_TOKENS: 'length',
  SAFETY: 'filter',
}

const inline = (mimeType: string, data: string | undefined): Part[] =>
  data === undefined ? [] : [{ inlineData: { mimeType, data } }]

function requestOf(
  model: string,
  asked: Asked,
  results: { readonly of: Seen; readonly say: string } | undefined,
): GenerateContentParameters {
  const parts: Part[] = [
    { text: question },
    ...inline('image/png', asked.picture),
    ...inline('application/pdf', asked.pdf),
    ...inline('audio/wav', asked.audio),
  ]
  const answers = results?.of.calls.map(({ id, name }) => ({
    functionResponse: { ...(id && { id }), name, response: { result: `${results.say} ${name}` } },
  }))
  const functions = asked.tools?.map((name) => ({ name, parametersJsonSchema: cityTool }))
  const tools = [
    ...(functions ? [{ functionDeclarations: functions }] : []),
    ...(asked.search ? [{ googleSearch: {} }] : []),
  ]
  return {
    model,
    contents: [
      { role: 'user', parts },
      ...(results
        ? [
            { role: 'model', parts: results.of.turn as Part[] },
            { role: 'user', parts: answers ?? [] },
          ]
        : []),
    ],
    config: {
      ...(asked.system && { systemInstruction: asked.system }),
      ...(asked.effort && {
        thinkingConfig: {
          thinkingLevel: asked.effort.toUpperCase() as never,
          includeThoughts: true,
        },
      }),
      ...(asked.schema && {
        responseMimeType: 'application/json',
        responseJsonSchema: asked.schema,
      }),
      ...(tools.length > 0 && { tools }),
    },
  }
}

/** All responses of a stream as one. */
async function collected(stream: AsyncIterable<GenerateContentResponse>) {
  const all = await Array.fromAsync(stream)
  const found = all.map(({ candidates }) => candidates?.[0])
  return {
    parts: found.flatMap((candidate) => candidate?.content?.parts ?? []),
    finish: found.findLast((candidate) => candidate?.finishReason)?.finishReason,
    grounding: found.findLast((candidate) => candidate?.groundingMetadata)?.groundingMetadata,
    usage: all.findLast(({ usageMetadata }) => usageMetadata)?.usageMetadata,
  }
}

export const gemini: Client = {
  name: 'Gemini',
  lacks: ['isCached'],
  async ask(base, model, asked, isStreamed, results) {
    const { models } = new GoogleGenAI({
      apiKey: 'client-key',
      httpOptions: { baseUrl: base, retryOptions: { attempts: 1 } },
    })
    const request = requestOf(model, asked, results)
    const one = async function* () {
      yield await models.generateContent(request)
    }
    const { parts, finish, grounding, usage } = await collected(
      isStreamed ? await models.generateContentStream(request) : one(),
    )
    const textOf = (isThought: boolean) =>
      parts
        .filter(({ thought = false }) => thought === isThought)
        .map(({ text = '' }) => text)
        .join('')
    const calls = parts.flatMap(({ functionCall: call }) =>
      call === undefined
        ? []
        : [{ id: call.id ?? '', name: call.name ?? '', input: JSON.stringify(call.args) }],
    )
    return {
      text: textOf(false),
      thinking: textOf(true),
      calls,
      stop: stops[finish ?? ''],
      cached: usage?.cachedContentTokenCount ?? 0,
      sources: (grounding?.groundingChunks ?? []).map(({ web }) => web?.uri ?? ''),
      turn: parts,
    }
  },
}
