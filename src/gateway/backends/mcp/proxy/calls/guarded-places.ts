/** The members of messages that guards of MCP read, by their place, for the documentation and for tests. */
import type { McpPlace } from '../../../ai/policy/scope.ts'

/** Members of messages of clients (`request`) and of servers (`response`). `a` stands for any name. */
interface PlaceMembers {
  readonly request: readonly string[]
  readonly response: readonly string[]
}

export const mcpMembers: Readonly<Record<McpPlace, PlaceMembers>> = {
  Arguments: {
    request: [
      ...['tools/call: params.arguments.a', 'completion/complete: params.argument.value'],
      'completion/complete: params.context.arguments.a',
    ],
    response: [],
  },
  Results: {
    request: [],
    response: [
      ...['tools/call: result.content[type=text].text', 'tools/call: result.structuredContent.a'],
      ...['completion/complete: result.completion.values[]', 'tasks/get: result.result.content'],
      ...[
        'notifications/message: params.data',
        'sampling/createMessage: params.messages[].content',
      ],
    ],
  },
  Resources: { request: [], response: ['resources/read: result.contents[].text'] },
  Prompts: {
    request: ['prompts/get: params.arguments.a'],
    response: ['prompts/get: result.description', 'prompts/get: result.messages[].content.text'],
  },
  Definitions: {
    request: [],
    response: [
      ...['tools/list: result.tools[name=f].description', 'tools/list: result.tools[name=f].title'],
      ...[
        'tools/list: result.tools[name=f].inputSchema.properties.a.description',
        'tools/list: result.tools[name=f].outputSchema.properties.a.description',
      ],
      'prompts/list: result.prompts[name=f].arguments[name=a].description',
      'resources/list: result.resources[uri=u].description',
      'resources/templates/list: result.resourceTemplates[uriTemplate=u].description',
      ...['initialize: result.instructions', 'server/discover: result.instructions'],
    ],
  },
}
