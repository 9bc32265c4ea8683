import { describe, expect, it } from 'vitest'
import { type IdOpener, StoredNotFoundError } from '../../stored/stored-ids.ts'
import { openRequest, sealEvent, sealResponse } from './stored.ts'

/** A client owns the ids that begin with `my-`. */
const ids: IdOpener = {
  need(kind, id, param) {
    if (!id.startsWith('my-')) throw new StoredNotFoundError(kind, id, param)
    return id.slice(3)
  },
  find: (_, id) => (id.startsWith('my-') ? id.slice(3) : undefined),
}
const seal = (kind: string, id: string) => `${kind}:${id}`

describe('ids in a request for a response', () => {
  it.each([
    [{ previous_response_id: 'x' }, 'previous_response_id: no response found'],
    [{ conversation: 'x' }, 'conversation: no conversation found'],
    [{ conversation: { id: 'x' } }, 'conversation.id'],
    [{ input: [{ type: 'item_reference', id: 'x' }] }, 'input[0].id: no item found'],
    [{ input: [{ id: 'x' }] }, 'input[0].id'],
    [{ input: [{ type: 'image_generation_call', id: 'x' }] }, 'input[0].id'],
    [
      { input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'x' }] }] },
      'input[0].content.file_id: no file found',
    ],
    [
      { input: [{ type: 'mcp_approval_response', approval_request_id: 'x', approve: true }] },
      'input[0].approval_request_id',
    ],
    [
      { input: [{ type: 'computer_call_output', output: { file_id: 'x' } }] },
      'input[0].output.file_id',
    ],
    [{ tools: [{ type: 'code_interpreter', container: 'x' }] }, 'tools.container: no container'],
    [
      { tools: [{ type: 'code_interpreter', container: { type: 'auto', file_ids: ['x'] } }] },
      'tools.container.file_ids',
    ],
    [
      {
        tools: [{ type: 'shell', environment: { type: 'container_reference', container_id: 'x' } }],
      },
      'tools.environment.container_id',
    ],
    [
      { prompt: { id: 'p', variables: { v: { type: 'input_file', file_id: 'x' } } } },
      'prompt.variables.v.file_id',
    ],
  ])('are refused in %j', (body, message) => {
    expect(() => openRequest(body, ids)).toThrow(message)
  })

  it('are opened, and lost by items that bring their content', () => {
    const body = {
      previous_response_id: 'my-r',
      input: [
        { type: 'item_reference', id: 'my-i' },
        { type: 'reasoning', id: 'rs_of_another', encrypted_content: 'gAAAA' },
        { type: 'message', id: 'my-m', role: 'user', content: 'Hi' },
        { type: 'mcp_approval_request', id: 'mcpr_1', name: 'f' },
        { type: 'mcp_approval_response', approval_request_id: 'mcpr_1', approve: true },
        { type: 'code_interpreter_call', id: 'my-c', container_id: 'my-box' },
        {
          role: 'assistant',
          content: [{ type: 'output_text', annotations: [{ file_id: 'file-cited' }] }],
        },
      ],
      tools: [{ type: 'function', parameters: { properties: { file_id: { type: 'string' } } } }],
    }
    expect(openRequest(body, ids)).toEqual({
      ...body,
      previous_response_id: 'r',
      input: [
        { type: 'item_reference', id: 'i' },
        { type: 'reasoning', encrypted_content: 'gAAAA' },
        { type: 'message', id: 'm', role: 'user', content: 'Hi' },
        body.input[3],
        body.input[4],
        { type: 'code_interpreter_call', id: 'c', container_id: 'box' },
        body.input[6],
      ],
    })
  })

  it('leave a request without ids the object that it is', () => {
    const body = { input: [{ role: 'user', content: [{ type: 'input_text', text: 'Hi' }] }] }
    expect(openRequest(body, ids)).toBe(body)
  })
})

describe('ids in a response', () => {
  it('are sealed wherever a later request can refer to them', () => {
    const container = { type: 'container_file_citation', container_id: 'box', file_id: 'cfile_1' }
    const item = { id: 'i', type: 'message', content: [{ annotations: [container] }] }
    const response = {
      id: 'r',
      previous_response_id: null,
      conversation: { id: 'c' },
      output: [item],
    }
    const sealed = {
      id: 'response:r',
      previous_response_id: null,
      conversation: { id: 'conversation:c' },
      output: [
        {
          ...item,
          id: 'item:i',
          content: [{ annotations: [{ ...container, container_id: 'container:box' }] }],
        },
      ],
    }
    expect(sealResponse(response, seal)).toEqual(sealed)
    expect(sealEvent({ type: 'response.of_tomorrow', response, item_id: 'i' }, seal)).toEqual({
      type: 'response.of_tomorrow',
      response: sealed,
      item_id: 'item:i',
    })
  })
})
