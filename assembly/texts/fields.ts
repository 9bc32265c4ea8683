// Generated from src/engines/messages by npm run generate.
// Which strings of a request or of an answer are texts that guards read: every string, unless a field says that it
// is something else.

/** A content: a text, parts, or one part. */
export const FIELD_CONTENT: u32 = 1
/** A top-level setting of a request. */
export const FIELD_SETTING: u32 = 2
/** A string that is no text. */
export const FIELD_LABEL: u32 = 4
/** Reasoning of the assistant. */
export const FIELD_REASONING: u32 = 8
/** Arguments of tool calls, schemas, settings of parts. */
export const FIELD_ARGUMENT: u32 = 16
/** Details of answers that are no texts of the model. */
export const FIELD_DETAIL: u32 = 32
/** Texts that quote or name sources. */
export const FIELD_CITATION: u32 = 64
/** Arguments of calls that the client runs. */
export const FIELD_CLIENT_CALL: u32 = 128
/** An image, and how it was made. */
export const FIELD_IMAGE_CALL: u32 = 256
/** By which guards decide what they read: no name may differ from it only in case. */
export const FIELD_GUARDED: u32 = 512
/** The same for top-level fields, which the gateway decides. */
export const FIELD_DECIDED: u32 = 1024
/** Nothing below it repeats a text of an answer. */
export const FIELD_UNREPEATED: u32 = 2048
/** A string that describes an event, and is no text. */
export const FIELD_PLAIN: u32 = 4096
/** A member with texts in requests of any format. */
export const FIELD_REQUEST_TEXT: u32 = 8192
/** A member with texts in requests of Completions. */
export const FIELD_OF_COMPLETIONS: u32 = 16384
/** A member with texts in requests of Messages. */
export const FIELD_OF_MESSAGES: u32 = 32768
/** A member with texts in requests of Responses. */
export const FIELD_OF_RESPONSES: u32 = 65536
/** A member with texts in requests of Embeddings. */
export const FIELD_OF_EMBEDDINGS: u32 = 131072
/** A member with texts in requests of VendorCTokenCount. */
export const FIELD_OF_VENDORCTOKENCOUNT: u32 = 262144

/** FIELD_OF_* by the number of the format; the first one is no format. */
export const FIELD_OF: StaticArray<u32> = [0, FIELD_OF_COMPLETIONS, FIELD_OF_MESSAGES, FIELD_OF_RESPONSES, FIELD_OF_EMBEDDINGS, FIELD_OF_VENDORCTOKENCOUNT]

/** The names of each table, each of which ends with a space. The bit of a table is its position. */
export const FIELD_TABLES: StaticArray<string> = [
  'content output outputs results system instructions ',
  'model stream stream_options tools tool_choice functions function_call response_format text stop stop_sequences user safety_identifier prompt_cache_key prompt_cache_retention metadata service_tier store modalities audio reasoning reasoning_effort thinking verbosity output_config output_format web_search_options include truncation previous_response_id conversation container mcp_servers speed inference_geo cache_control logit_bias encoding_format safetySettings cachedContent labels anthropic_version anthropic_beta task_type input_type truncate ',
  'type role name id ids object status phase model format detail media_type mime_type content_type signature b64_json partial_image_b64 namespace server_label version finish_reason native_finish_reason stop_reason service_tier system_fingerprint provider obfuscation url uri ',
  'thinking reasoning reasoning_content reasoning_details thinking_blocks ',
  'arguments partial_json parameters input_schema schema json_schema cache_control ',
  'usage incomplete_details content_filter_results content_filter_result prompt_filter_results safety_ratings billing ',
  'annotation annotations citation citations context search_results ',
  'action actions operation environment ',
  'result size quality background output_format action ',
  'content output outputs results title context stdout stderr logs role refusal type text source data variables transcript media_type file_data filename custom input messages system instructions prompt prediction name arguments thinking ',
  'model stream service_tier temperature top_p frequency_penalty presence_penalty seed max_tokens max_completion_tokens max_output_tokens encoding_format dimensions n best_of stream_options top_k background ',
  'arguments input parameters input_schema schema tools usage metadata ',
  'id object model type system_fingerprint service_tier provider ',
  'messages system instructions prompt input message inputs contents content documents instances systeminstruction system_instruction chat_history preamble query queries texts ',
  'messages ',
  'messages system ',
  'instructions prompt input ',
  'input ',
  'messages system ',
]
