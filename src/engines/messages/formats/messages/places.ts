/** The members of requests and responses that have texts, by the names that scopes of guards use. */
import type { FormatPlaces } from '../../mask/places.ts'

export const messagesPlaces: FormatPlaces = {
  request: {
    SystemPrompt: ['system[type=text].text'],
    Messages: [
      'messages[role=user].content',
      'messages[role=user].content[type=text].text',
      'messages[role=assistant].content[type=text].text',
    ],
    ToolDefinition: ['tools[name=f].description', 'tools[name=f].input_schema.description'],
    ToolInput: ['messages[role=assistant].content[type=tool_use].input.a'],
    ToolOutput: [
      'messages[role=user].content[type=tool_result].content',
      'messages[role=user].content[type=tool_result].content[type=text].text',
      'messages[role=user].content[type=tool_result].content[type=document].title',
    ],
    Reasoning: ['messages[role=assistant].content[type=thinking].thinking'],
    Documents: [
      'messages[role=user].content[type=document].source{type=text}.data',
      'messages[role=user].content[type=document].title',
      'messages[role=user].content[type=document].context',
      'messages[role=user].content[type=search_result].content[type=text].text',
    ],
  },
  response: {
    Messages: ['content[type=text].text'],
    ToolInput: ['content[type=tool_use].input.a', 'content[type=server_tool_use].input.a'],
    ToolOutput: ['content[type=bash_code_execution_tool_result].content.stdout'],
    Reasoning: ['content[type=thinking].thinking'],
    Documents: ['content[type=text].citations[type=char_location].cited_text'],
  },
}
