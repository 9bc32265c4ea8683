/** The members of requests and responses that have texts, by the names that scopes of guards use. */
import type { FormatPlaces } from '../../mask/places.ts'

export const responsesPlaces: FormatPlaces = {
  request: {
    SystemPrompt: ['instructions', 'input[type=message,role=developer].content'],
    Messages: [
      'input[type=message,role=user].content',
      'input[type=message,role=user].content[type=input_text].text',
      'input[type=message,role=assistant].content[type=output_text].text',
      'prompt.variables.a',
    ],
    ToolDefinition: [
      'tools[type=function].description',
      'tools[type=function].parameters.description',
      'text.format.schema.description',
    ],
    ToolInput: ['input[type=function_call].arguments', 'input[type=custom_tool_call].input'],
    ToolOutput: [
      'input[type=function_call_output].output',
      'input[type=function_call_output].output[type=input_text].text',
      'input[type=custom_tool_call_output].output',
      'input[type=mcp_call].output',
    ],
    Reasoning: ['input[type=reasoning].summary[type=summary_text].text'],
    Documents: ['input[type=message,role=user].content[type=input_file].file_data'],
    FileNames: ['input[type=message,role=user].content[type=input_file].filename'],
  },
  response: {
    Messages: ['output[type=message].content[type=output_text].text'],
    ToolInput: ['output[type=function_call].arguments', 'output[type=code_interpreter_call].code'],
    ToolOutput: ['output[type=code_interpreter_call].outputs[type=logs].logs'],
    Reasoning: [
      'output[type=reasoning].summary[type=summary_text].text',
      'output[type=reasoning].content[type=reasoning_text].text',
    ],
    Documents: [
      'output[type=message].content[type=output_text].annotations[type=url_citation].title',
    ],
  },
}
