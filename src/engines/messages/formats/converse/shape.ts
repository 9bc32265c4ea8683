/** The shape of the fields that translations read. */
import { anyObject, list, number, object, text } from '../../common/shape.ts'

const source = object({ bytes: text, text, uri: text, s3Location: object({ uri: text }) })
const file = object({ format: text, source }, { required: 'source' })
const texts = list(object({ text }))
const search = object({ source: text, title: text, content: texts })

const resultPart = object({ text, image: file, document: file, searchResult: search })

const block = object({
  text,
  image: file,
  document: file,
  audio: file,
  toolUse: object({ toolUseId: text, name: text }, { required: 'toolUseId name' }),
  toolResult: object(
    { toolUseId: text, content: list(resultPart), status: text },
    { required: 'toolUseId content' },
  ),
  reasoningContent: object({
    reasoningText: object({ text, signature: text }),
    redactedContent: text,
  }),
  citationsContent: object({ content: texts }),
  searchResult: search,
  cachePoint: anyObject,
})

export const converseShape = object(
  {
    messages: list(object({ role: text, content: list(block) }, { required: 'role content' })),
    system: list(object({ text, cachePoint: anyObject })),
    inferenceConfig: object({
      maxTokens: number,
      temperature: number,
      topP: number,
      stopSequences: list(text),
    }),
    toolConfig: object({
      tools: list(
        object({
          toolSpec: object(
            { name: text, description: text, inputSchema: object({ json: anyObject }) },
            { required: 'name' },
          ),
        }),
      ),
      toolChoice: object({ tool: object({ name: text }, { required: 'name' }) }),
    }),
    additionalModelRequestFields: anyObject,
    outputConfig: object({
      textFormat: object({
        type: text,
        structure: object({ jsonSchema: object({ schema: text, name: text, description: text }) }),
      }),
    }),
  },
  { required: 'messages' },
)
