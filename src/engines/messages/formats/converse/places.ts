/** The members of requests and responses that have texts, by the names that scopes of guards use. */
import type { FormatPlaces } from '../../mask/places.ts'

export const conversePlaces: FormatPlaces = {
  request: {
    SystemPrompt: ['system[].text'],
    Messages: ['messages[role=user].content[].text', 'messages[role=assistant].content[].text'],
    ToolDefinition: [
      'toolConfig.tools[].toolSpec.description',
      'toolConfig.tools[].toolSpec.inputSchema.json.description',
    ],
    ToolInput: ['messages[role=assistant].content[].toolUse.input.a'],
    ToolOutput: [
      'messages[role=user].content[].toolResult.content[].text',
      'messages[role=user].content[].toolResult.content[].json.a',
    ],
    Reasoning: ['messages[role=assistant].content[].reasoningContent.reasoningText.text'],
    Documents: ['messages[role=user].content[].document{format=txt}.source.bytes'],
    FileNames: ['messages[role=user].content[].document{format=txt}.name'],
  },
  response: {
    Messages: ['output.message.content[].text'],
    ToolInput: ['output.message.content[].toolUse.input.a'],
    Reasoning: ['output.message.content[].reasoningContent.reasoningText.text'],
  },
}
