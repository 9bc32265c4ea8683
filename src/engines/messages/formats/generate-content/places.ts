/** The members of requests and responses that have texts, by the names that scopes of guards use. */
import type { FormatPlaces } from '../../mask/places.ts'

export const generateContentPlaces: FormatPlaces = {
  request: {
    SystemPrompt: ['systemInstruction.parts[].text'],
    Messages: ['contents[role=user].parts[].text', 'contents[role=model].parts[].text'],
    ToolDefinition: [
      'tools[].functionDeclarations[name=f].description',
      'generationConfig.responseSchema.description',
    ],
    ToolInput: ['contents[role=model].parts[].functionCall.args.a'],
    ToolOutput: ['contents[role=user].parts[].functionResponse.response.a'],
    Reasoning: ['contents[role=model].parts[thought=true].text'],
    Documents: ['contents[role=user].parts[].inlineData{mimeType=text/plain}.data'],
    FileNames: ['contents[role=user].parts[].fileData.displayName'],
  },
  response: {
    Messages: ['candidates[].content.parts[].text'],
    ToolInput: ['candidates[].content.parts[].functionCall.args.a'],
    Reasoning: ['candidates[].content.parts[thought=true].text'],
  },
}
