/** The shape of the fields that translations read, by their names in camel case. */
import { anyObject, boolean, either, list, number, object, text } from '../../common/shape.ts'

const blob = object({ mimeType: text, data: text }, { required: 'mimeType data' })
const file = object({ mimeType: text, fileUri: text }, { required: 'fileUri' })

const part = object({
  text,
  thought: boolean,
  thoughtSignature: text,
  inlineData: blob,
  fileData: file,
  functionCall: object({ id: text, name: text, args: anyObject }, { required: 'name' }),
  functionResponse: object(
    { id: text, name: text, response: anyObject, parts: list(object({ inlineData: blob })) },
    { required: 'name' },
  ),
})

const content = object({ role: text, parts: list(part) })

const schema = anyObject

export const generateContentShape = object(
  {
    contents: list(content),
    systemInstruction: content,
    tools: list(
      object({
        functionDeclarations: list(
          object(
            { name: text, description: text, parameters: schema, parametersJsonSchema: schema },
            { required: 'name' },
          ),
        ),
        googleSearch: anyObject,
      }),
    ),
    toolConfig: object({
      functionCallingConfig: object({ mode: text, allowedFunctionNames: list(text) }),
    }),
    generationConfig: object({
      temperature: number,
      topP: number,
      topK: number,
      candidateCount: number,
      maxOutputTokens: number,
      stopSequences: list(text),
      seed: number,
      presencePenalty: number,
      frequencyPenalty: number,
      responseMimeType: text,
      responseSchema: schema,
      responseJsonSchema: either(anyObject, boolean),
      responseModalities: list(text),
      thinkingConfig: object({
        thinkingBudget: number,
        thinkingLevel: text,
        includeThoughts: boolean,
      }),
    }),
    cachedContent: text,
  },
  { required: 'contents' },
)
