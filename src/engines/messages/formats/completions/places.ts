/** The members of requests and responses that have texts, by the names that scopes of guards use. */
import type { FormatPlaces } from '../../mask/places.ts'

export const completionsPlaces: FormatPlaces = {
  request: {
    SystemPrompt: [
      'messages[role=system].content',
      'messages[role=developer].content[type=text].text',
    ],
    Messages: [
      'messages[role=user].content',
      'messages[role=user].content[type=text].text',
      'messages[role=assistant].content',
      'messages[role=assistant].refusal',
      'prediction.content',
    ],
    ToolDefinition: [
      'tools[type=function].function.description',
      'tools[type=function].function.parameters.properties.a.description',
      'functions[name=f].description',
      'response_format.json_schema.schema.description',
    ],
    ToolInput: [
      'messages[role=assistant].tool_calls[type=function].function.arguments',
      'messages[role=assistant].tool_calls[type=custom].custom.input',
      'messages[role=assistant].function_call.arguments',
    ],
    ToolOutput: [
      'messages[role=tool].content',
      'messages[role=tool].content[type=text].text',
      'messages[role=function].content',
    ],
    Reasoning: [
      'messages[role=assistant].reasoning_content',
      'messages[role=assistant].reasoning_details[type=reasoning.text].text',
    ],
    Documents: ['messages[role=user].content[type=file].file.file_data'],
    FileNames: ['messages[role=user].content[type=file].file.filename'],
  },
  response: {
    Messages: ['choices[index=0].message.content', 'choices[index=0].message.refusal'],
    ToolInput: ['choices[index=0].message.tool_calls[type=function].function.arguments'],
    Reasoning: ['choices[index=0].message.reasoning_content'],
    Documents: ['choices[index=0].message.annotations[type=url_citation].url_citation.title'],
  },
}
