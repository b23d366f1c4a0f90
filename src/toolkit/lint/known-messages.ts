// What the lint knows of Envoy's messages: the fields that it judges elsewhere or that are harmless, and the values that are. Everything
// that is not here is not judged, a field that a later Envoy gains too. envoy-messages.json has all fields of these messages, and their types.

// With any content they are harmless, or a rule judges it.
const whole = `config.core.v3.Node config.metrics.v3.StatsConfig config.bootstrap.v3.Bootstrap.GrpcAsyncClientManagerConfig
  config.bootstrap.v3.Bootstrap.ApplicationLogConfig config.bootstrap.v3.MemoryAllocatorManager config.core.v3.Metadata config.core.v3.SocketOption
  config.core.v3.SocketOptionsOverride config.listener.v3.Listener.ConnectionBalanceConfig.ExactBalance config.listener.v3.Listener.DeprecatedV1
  filters.network.http_connection_manager.v3.Rds config.core.v3.SchemeHeaderTransformation config.core.v3.ConfigSource
  config.core.v3.ApiConfigSource filters.network.http_connection_manager.v3.HttpConnectionManager.HcmAccessLogOptions
  filters.network.http_connection_manager.v3.HttpConnectionManager.SetCurrentClientCertDetails config.cluster.v3.Cluster.EdsClusterConfig
  config.cluster.v3.CircuitBreakers config.cluster.v3.Cluster.RefreshRate config.core.v3.ExtraSourceAddress
  config.cluster.v3.Cluster.RingHashLbConfig config.cluster.v3.Cluster.MaglevLbConfig config.cluster.v3.Cluster.LeastRequestLbConfig
  config.cluster.v3.Cluster.RoundRobinLbConfig config.cluster.v3.Cluster.CommonLbConfig config.cluster.v3.UpstreamConnectionOptions
  config.cluster.v3.TrackClusterStats config.cluster.v3.Cluster.PreconnectPolicy clusters.dns.v3.DnsCluster.RefreshRate
  config.endpoint.v3.ClusterLoadAssignment.Policy filters.http.ext_authz.v3.HttpService type.v3.HttpStatus type.matcher.v3.ListStringMatcher
  config.core.v3.RuntimeFractionalPercent type.matcher.v3.MetadataMatcher
  config.core.v3.RuntimeFeatureFlag filters.http.ext_authz.v3.BufferSettings filters.http.router.v3.Router.UpstreamAccessLogOptions type.v3.Percent
  type.v3.FractionalPercent config.core.v3.GrpcMethodList filters.http.compressor.v3.Compressor.RequestDirectionConfig
  filters.http.compressor.v3.Compressor.ResponseDirectionConfig filters.common.fault.v3.FaultDelay type.v3.TokenBucket
  common.ratelimit.v3.LocalRateLimitDescriptor config.route.v3.RateLimit filters.network.tcp_proxy.v3.TcpProxy.WeightedCluster type.v3.HashPolicy
  transport_sockets.tls.v3.TlsSessionTicketKeys config.core.v3.HttpService config.overload.v3.Trigger config.overload.v3.BufferFactoryConfig
  config.overload.v3.LoadShedPoint config.bootstrap.v3.ClusterManager.OutlierDetection config.listener.v3.FilterChainMatch
  config.core.v3.ExtensionConfigSource config.core.v3.KeepaliveSettings config.route.v3.VirtualCluster config.core.v3.HealthCheck.TcpHealthCheck
  config.core.v3.HealthCheck.TlsOptions config.core.v3.HealthCheck.Payload type.v3.Int64Range config.core.v3.Locality
  config.core.v3.GrpcService.GoogleGrpc config.core.v3.BackoffStrategy config.common.mutation_rules.v3.HeaderMutation.RemoveOnMatch
  transport_sockets.tls.v3.SdsSecretConfig config.bootstrap.v3.RuntimeLayer.AdminLayer type.tracing.v3.CustomTag.Literal
  type.tracing.v3.CustomTag.Environment type.tracing.v3.CustomTag.Header type.tracing.v3.CustomTag.Metadata config.accesslog.v3.AccessLogFilter
  config.route.v3.Decorator config.route.v3.NonForwardingAction config.route.v3.RouteAction.MaxStreamDuration config.route.v3.RouteAction.HashPolicy
  config.route.v3.CorsPolicy config.core.v3.Http1ProtocolOptions.HeaderKeyFormat.ProperCaseWords config.core.v3.JsonFormatOptions
  retry.host.omit_host_metadata.v3.OmitHostMetadataConfig retry.host.omit_canary_hosts.v3.OmitCanaryHostsPredicate
  compression.gzip.compressor.v3.Gzip compression.brotli.compressor.v3.Brotli compression.zstd.compressor.v3.Zstd
  filters.http.admission_control.v3.AdmissionControl filters.http.adaptive_concurrency.v3.AdaptiveConcurrency
  filters.http.decompressor.v3.Decompressor load_balancing_policies.round_robin.v3.RoundRobin load_balancing_policies.least_request.v3.LeastRequest
  load_balancing_policies.random.v3.Random load_balancing_policies.ring_hash.v3.RingHash load_balancing_policies.maglev.v3.Maglev
  load_balancing_policies.cluster_provided.v3.ClusterProvided config.trace.v3.ZipkinConfig filters.http.compressor.v3.CompressorPerRoute
  load_balancing_policies.client_side_weighted_round_robin.v3.ClientSideWeightedRoundRobin tracers.opentelemetry.samplers.v3.AlwaysOnSamplerConfig
  tracers.opentelemetry.resource_detectors.v3.StaticConfigResourceDetectorConfig stats.PluginConfig istio.envoy.config.filter.http.alpn.v2alpha1.FilterConfig
  io.istio.http.peer_metadata.Config istio.tcp.metadataexchange.config.MetadataExchange io.istio.network.metadata_exchange.Config
  istio.http.peer_metadata.Config tcp.metadataexchange.config.MetadataExchange`;
// They have no field, or none that is harmless.
const empty = `config.cluster.v3.Cluster.OriginalDstLbConfig filters.http.cors.v3.Cors filters.http.grpc_web.v3.GrpcWeb
  filters.http.upstream_codec.v3.UpstreamCodec filters.listener.http_inspector.v3.HttpInspector filters.listener.original_dst.v3.OriginalDst
  transport_sockets.raw_buffer.v3.RawBuffer http.header_formatters.preserve_case.v3.PreserveCaseFormatterConfig
  retry.host.previous_hosts.v3.PreviousHostsPredicate`;
// They hold an extension.
const holders = `config.core.v3.RetryPolicy.RetryHostPredicate config.route.v3.RetryPolicy.RetryHostPredicate config.core.v3.TypedExtensionConfig
  config.core.v3.TransportSocket config.listener.v3.ListenerFilter config.metrics.v3.StatsSink config.cluster.v3.Cluster.CustomClusterType
  config.cluster.v3.Filter config.overload.v3.ResourceMonitor config.trace.v3.Tracing.Http`;
const protocols = `upstreams.http.v3.HttpProtocolOptions.UseDownstreamHttpConfig upstreams.http.v3.HttpProtocolOptions.AutoHttpConfig
  upstreams.http.v3.HttpProtocolOptions.ExplicitHttpConfig`;

function rows(names: string, fields: string): Readonly<Record<string, string>> {
  return Object.fromEntries(names.split(/\s+/).map(name => [name, fields]));
}

/**
 * Fields of each message: `field` with any value, `field=a|b` with these values, `*` for all others. A field is looked into where its message is in
 * the table, and not judged where it is a message that is not. Names are without `envoy.` and `extensions.`; one without dots is no message of Envoy.
 */
export const knownMessages: Readonly<Record<string, string>> = {
  ...rows(whole, '*'),
  ...rows(empty, ''),
  ...rows(holders, 'name typed_config'),
  ...rows(protocols, 'http_protocol_options http2_protocol_options'),
  'config.bootstrap.v3.Watchdogs': 'main_thread_watchdog worker_watchdog',
  'config.bootstrap.v3.Watchdog': `miss_timeout megamiss_timeout kill_timeout max_kill_timeout_jitter multikill_timeout multikill_threshold`,
  'config.bootstrap.v3.Bootstrap.DynamicResources': 'lds_config lds_resources_locator ads_config',
  'config.listener.v3.Listener.ConnectionBalanceConfig': 'exact_balance',
  'config.core.v3.UpstreamHttpProtocolOptions': 'auto_sni auto_san_validation',
  'config.cluster.v3.OutlierDetection': '* monitors=never',
  'config.core.v3.BindConfig': 'source_address freebind socket_options extra_source_addresses',
  'config.core.v3.HealthCheck.HttpHealthCheck': `host path receive response_buffer_size expected_statuses retriable_statuses codec_client_type service_name_matcher request_headers_to_remove
    method=METHOD_UNSPECIFIED|GET|HEAD`,
  'config.core.v3.HealthCheck.GrpcHealthCheck': 'service_name authority',
  'config.endpoint.v3.Endpoint.HealthCheckConfig': 'hostname',
  'filters.http.fault.v3.FaultAbort': 'http_status grpc_status percentage',
  'config.overload.v3.OverloadAction': 'name triggers',
  'config.core.v3.Pipe': 'path',
  'config.core.v3.GrpcService.EnvoyGrpc': `cluster_name authority retry_policy max_receive_message_length skip_envoy_headers`,
  'config.core.v3.RetryPolicy': `retry_back_off num_retries retry_on retry_host_predicate host_selection_retry_max_attempts`,
  'config.route.v3.RetryPolicy': '* retry_host_predicate retry_priority=never retry_options_predicates=never',
  'transport_sockets.tls.v3.TlsParameters': `tls_minimum_protocol_version=TLS_AUTO|TLSv1_2|TLSv1_3 tls_maximum_protocol_version=TLS_AUTO|TLSv1_2|TLSv1_3 cipher_suites ecdh_curves
    signature_algorithms compliance_policies`,
  'transport_sockets.tls.v3.TlsCertificate': '* private_key_provider=never',
  'transport_sockets.tls.v3.CertificateValidationContext': `* trust_chain_verification=VERIFY_TRUST_CHAIN allow_expired_certificate=false only_verify_leaf_cert_crl=false custom_validator_config=never`,
  'transport_sockets.tls.v3.CommonTlsContext.CombinedCertificateValidationContext': `default_validation_context validation_context_sds_secret_config`,
  'config.rbac.v3.RBAC': '* audit_logging_options=never',
  'config.bootstrap.v3.Bootstrap': `node admin static_resources layered_runtime overload_manager stats_flush_interval stats_flush_on_admin stats_config cluster_manager watchdog
    watchdogs dynamic_resources stats_server_version_override grpc_async_client_manager_config typed_dns_resolver_config application_log_config
    memory_allocator_manager stats_sinks default_socket_interface node_context_params`,
  'config.listener.v3.Listener': `name address additional_addresses stat_prefix filter_chains default_filter_chain per_connection_buffer_limit_bytes metadata drain_type
    listener_filters listener_filters_timeout continue_on_listener_filters_timeout transparent freebind socket_options tcp_fast_open_queue_length
    traffic_direction access_log enable_reuse_port reuse_port connection_balance_config tcp_backlog_size bind_to_port ignore_global_conn_limit
    bypass_overload_manager use_original_dst max_connections_to_accept_per_socket_event enable_mptcp deprecated_v1`,
  'filters.network.http_connection_manager.v3.HttpConnectionManager': `codec_type=AUTO|HTTP1|HTTP2 stat_prefix rds route_config http_filters add_user_agent tracing common_http_protocol_options http_protocol_options
    http2_protocol_options server_name server_header_transformation scheme_header_transformation max_request_headers_kb stream_idle_timeout
    stream_flush_timeout request_timeout request_headers_timeout drain_timeout access_log access_log_options access_log_flush_interval
    flush_access_log_on_new_request use_remote_address xff_num_trusted_hops skip_xff_append via generate_request_id preserve_external_request_id
    always_set_request_id_in_response forward_client_cert_details=SANITIZE|SANITIZE_SET|APPEND_FORWARD set_current_client_cert_details
    proxy_100_continue upgrade_configs normalize_path merge_slashes path_with_escaped_slashes_action request_id_extension local_reply_config
    strip_any_host_port strip_matching_host_port strip_trailing_host_dot stream_error_on_invalid_http_message early_header_mutation_extensions
    delayed_close_timeout represent_ipv4_remote_address_as_ipv4_mapped_ipv6 append_x_forwarded_port append_local_overload
    http1_safe_max_connection_duration original_ip_detection_extensions`,
  'config.route.v3.RouteConfiguration': `name virtual_hosts internal_only_headers response_headers_to_add response_headers_to_remove request_headers_to_add request_headers_to_remove
    validate_clusters max_direct_response_body_size_bytes most_specific_header_mutations_wins typed_per_filter_config metadata
    ignore_port_in_host_matching ignore_path_parameters_in_path_matching=false`,
  'config.cluster.v3.Cluster': `name alt_stat_name cluster_type type=STATIC|STRICT_DNS|LOGICAL_DNS|EDS|ORIGINAL_DST eds_cluster_config connect_timeout
    per_connection_buffer_limit_bytes lb_policy=ROUND_ROBIN|LEAST_REQUEST|RANDOM|RING_HASH|MAGLEV|CLUSTER_PROVIDED|LOAD_BALANCING_POLICY_CONFIG
    load_assignment health_checks max_requests_per_connection circuit_breakers upstream_http_protocol_options common_http_protocol_options
    http_protocol_options http2_protocol_options typed_extension_protocol_options dns_refresh_rate dns_failure_refresh_rate dns_jitter
    respect_dns_ttl dns_lookup_family use_tcp_for_dns_lookups outlier_detection cleanup_interval upstream_bind_config ring_hash_lb_config
    maglev_lb_config original_dst_lb_config least_request_lb_config round_robin_lb_config common_lb_config load_balancing_policy metadata
    protocol_selection upstream_connection_options close_connections_on_host_health_failure ignore_health_on_host_removal filters transport_socket
    transport_socket_matches wait_for_warm_on_init track_cluster_stats track_timeout_budgets preconnect_policy
    connection_pool_per_downstream_connection typed_dns_resolver_config`,
  'clusters.dns.v3.DnsCluster': `dns_refresh_rate dns_failure_refresh_rate respect_dns_ttl dns_jitter typed_dns_resolver_config dns_lookup_family all_addresses_in_single_endpoint`,
  'clusters.aggregate.v3.ClusterConfig': 'clusters',
  'config.endpoint.v3.ClusterLoadAssignment': 'cluster_name endpoints named_endpoints policy',
  'filters.http.ext_authz.v3.ExtAuthz': `grpc_service http_service failure_mode_allow failure_mode_allow_header_add status_on_error stat_prefix clear_route_cache include_peer_certificate
    include_tls_session encode_raw_headers allowed_headers disallowed_headers validate_mutations decoder_header_mutation_rules
    charge_cluster_response_stats emit_filter_state_stats enable_dynamic_metadata_ingestion max_denied_response_body_bytes
    transport_api_version=AUTO|V3 filter_enabled filter_enabled_metadata deny_at_disable shadow_mode with_request_body bootstrap_metadata_labels_key
    metadata_context_namespaces typed_metadata_context_namespaces route_metadata_context_namespaces route_typed_metadata_context_namespaces
    filter_metadata`,
  'filters.http.ext_authz.v3.ExtAuthzPerRoute': 'disabled check_settings',
  'filters.http.rbac.v3.RBAC': 'rules rules_stat_prefix shadow_rules shadow_rules_stat_prefix track_per_rule_stats',
  'filters.http.rbac.v3.RBACPerRoute': 'rbac',
  'filters.http.header_mutation.v3.HeaderMutation': 'mutations most_specific_header_mutations_wins',
  'filters.http.header_mutation.v3.HeaderMutationPerRoute': 'mutations',
  'http.early_header_mutation.header_mutation.v3.HeaderMutation': 'mutations',
  'filters.http.cors.v3.CorsPolicy': `allow_origin_string_match allow_methods allow_headers expose_headers max_age allow_credentials filter_enabled shadow_enabled
    allow_private_network_access forward_not_matching_preflights=false`,
  'filters.http.router.v3.Router': `suppress_envoy_headers dynamic_stats start_child_span strict_check_headers respect_expected_rq_timeout upstream_log
    suppress_grpc_request_failure_code_stats upstream_http_filters upstream_log_options`,
  'filters.http.health_check.v3.HealthCheck': `pass_through_mode=false headers cache_time cluster_min_healthy_percentages`,
  'filters.http.grpc_stats.v3.FilterConfig': `emit_filter_state individual_method_stats_allowlist stats_for_all_methods enable_upstream_stats replace_dots_in_grpc_service_name`,
  'filters.http.buffer.v3.Buffer': 'max_request_bytes',
  'filters.http.buffer.v3.BufferPerRoute': 'disabled buffer',
  'filters.http.csrf.v3.CsrfPolicy': 'filter_enabled shadow_enabled additional_origins',
  'filters.http.bandwidth_limit.v3.BandwidthLimit': `stat_prefix enable_mode limit_kbps fill_interval runtime_enabled enable_response_trailers response_trailer_prefix`,
  'filters.http.compressor.v3.Compressor': `compressor_library request_direction_config response_direction_config choose_first content_length content_type disable_on_etag_header
    remove_accept_encoding_header runtime_enabled`,
  'filters.http.fault.v3.HTTPFault': 'delay abort max_active_faults',
  'filters.http.local_ratelimit.v3.LocalRateLimit': `stat_prefix token_bucket status filter_enabled filter_enforced descriptors stage local_rate_limit_per_downstream_connection
    enable_x_ratelimit_headers max_dynamic_descriptors rate_limits vh_rate_limits always_consume_default_token_bucket
    rate_limited_as_resource_exhausted`,
  'config.route.v3.FilterConfig': 'config is_optional=false disabled',
  'access_loggers.stream.v3.StdoutAccessLog': 'log_format',
  'access_loggers.stream.v3.StderrAccessLog': 'log_format',
  'access_loggers.file.v3.FileAccessLog': 'path format json_format typed_json_format log_format',
  'filters.http.mcp.v3.Mcp': `traffic_mode clear_route_cache=false max_request_body_size request_storage_mode reject_duplicate_keys attribute_source
    max_supported_protocol_version`,
  'filters.network.tcp_proxy.v3.TcpProxy': `stat_prefix cluster weighted_clusters idle_timeout access_log max_connect_attempts hash_policy metadata_match max_downstream_connection_duration
    upstream_idle_timeout downstream_idle_timeout`,
  'filters.network.rbac.v3.RBAC': 'rules shadow_rules stat_prefix shadow_rules_stat_prefix enforcement_type delay_deny',
  'filters.network.ext_authz.v3.ExtAuthz': `grpc_service stat_prefix transport_api_version failure_mode_allow filter_enabled_metadata include_peer_certificate include_tls_session
    send_tls_alert_on_denial bootstrap_metadata_labels_key`,
  'filters.network.connection_limit.v3.ConnectionLimit': 'stat_prefix max_connections delay runtime_enabled',
  'filters.listener.tls_inspector.v3.TlsInspector': `initial_read_buffer_size enable_ja3_fingerprinting enable_ja4_fingerprinting`,
  'filters.listener.original_src.v3.OriginalSrc': 'bind_port mark',
  'transport_sockets.tls.v3.UpstreamTlsContext': `common_tls_context sni allow_renegotiation=false max_session_keys auto_host_sni auto_sni_san_validation enforce_rsa_key_usage`,
  'transport_sockets.tls.v3.DownstreamTlsContext': `common_tls_context require_client_certificate require_sni session_ticket_keys session_timeout ocsp_staple_policy full_scan_certs_on_sni_mismatch
    disable_stateless_session_resumption disable_stateful_session_resumption prefer_client_ciphers`,
  'upstreams.http.v3.HttpProtocolOptions': `common_http_protocol_options upstream_http_protocol_options explicit_http_config use_downstream_protocol_config auto_config http_filters hash_policy`,
  'request_id.uuid.v3.UuidRequestIdConfig': 'pack_trace_reason use_request_id_for_trace_sampling',
  'resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig': 'max_active_downstream_connections',
  'resource_monitors.fixed_heap.v3.FixedHeapConfig': 'max_heap_size_bytes',
  'config.metrics.v3.StatsdSink': 'address tcp_cluster_name prefix',
  'config.trace.v3.OpenTelemetryConfig': 'grpc_service http_service service_name resource_detectors sampler',
  'config.bootstrap.v3.Admin': `address ignore_global_conn_limit profile_path socket_options access_log access_log_path allow_paths`,
  'config.bootstrap.v3.Bootstrap.StaticResources': 'listeners clusters secrets',
  'config.bootstrap.v3.LayeredRuntime': 'layers',
  'config.overload.v3.OverloadManager': `refresh_interval resource_monitors actions buffer_factory_config loadshed_points`,
  'config.bootstrap.v3.ClusterManager': `outlier_detection local_cluster_name enable_deferred_cluster_creation upstream_bind_config`,
  'config.core.v3.Address': 'socket_address pipe',
  'config.listener.v3.AdditionalAddress': 'address socket_options',
  'config.listener.v3.FilterChain': `filter_chain_match filters transport_socket transport_socket_connect_timeout metadata name use_proxy_proto=false`,
  'filters.network.http_connection_manager.v3.HttpFilter': `name typed_config is_optional=false disabled config_discovery`,
  'filters.network.http_connection_manager.v3.HttpConnectionManager.Tracing': `client_sampling random_sampling overall_sampling verbose max_path_tag_length custom_tags provider spawn_upstream_span operation
    upstream_operation`,
  'config.core.v3.HttpProtocolOptions': `idle_timeout max_connection_duration max_headers_count max_response_headers_kb max_stream_duration headers_with_underscores_action
    max_requests_per_connection`,
  'config.core.v3.Http1ProtocolOptions': `allow_absolute_url allow_chunked_length=false allow_custom_methods accept_http_10 header_key_format enable_trailers ignore_http_11_upgrade
    override_stream_error_on_invalid_http_message send_fully_qualified_url=false use_balsa_parser=true`,
  'config.core.v3.Http2ProtocolOptions': `hpack_table_size max_concurrent_streams initial_stream_window_size initial_connection_window_size allow_connect max_outbound_frames
    max_outbound_control_frames max_consecutive_inbound_frames_with_empty_payload max_inbound_priority_frames_per_stream
    max_inbound_window_update_frames_per_data_frame_sent override_stream_error_on_invalid_http_message connection_keepalive max_metadata_size
    use_oghttp2_codec`,
  'filters.network.http_connection_manager.v3.HttpConnectionManager.UpgradeConfig': `upgrade_type=websocket enabled filters`,
  'filters.network.http_connection_manager.v3.LocalReplyConfig': 'mappers body_format',
  'config.route.v3.VirtualHost': `name domains routes require_tls virtual_clusters request_headers_to_add request_headers_to_remove response_headers_to_add response_headers_to_remove
    typed_per_filter_config rate_limits include_request_attempt_count include_attempt_count_in_response include_is_timeout_retry_header retry_policy
    per_request_buffer_limit_bytes request_body_buffer_limit metadata`,
  'config.core.v3.HeaderValueOption': 'header append_action append keep_empty_value',
  'config.core.v3.HealthCheck': `timeout interval initial_jitter interval_jitter interval_jitter_percent unhealthy_threshold healthy_threshold reuse_connection http_health_check
    grpc_health_check tcp_health_check no_traffic_interval no_traffic_healthy_interval unhealthy_interval unhealthy_edge_interval
    healthy_edge_interval always_log_health_check_failures always_log_health_check_success tls_options`,
  'config.cluster.v3.Cluster.TransportSocketMatch': 'name match transport_socket',
  'config.endpoint.v3.LocalityLbEndpoints': 'locality lb_endpoints load_balancing_weight priority proximity metadata',
  'config.core.v3.GrpcService': 'envoy_grpc google_grpc timeout retry_policy',
  'filters.http.ext_authz.v3.CheckSettings': `context_extensions disable_request_body_buffering with_request_body grpc_service`,
  'filters.http.header_mutation.v3.Mutations': `request_mutations request_trailers_mutations response_mutations response_trailers_mutations`,
  'config.common.mutation_rules.v3.HeaderMutation': 'remove remove_on_match append',
  'transport_sockets.tls.v3.CommonTlsContext': `tls_params tls_certificates tls_certificate_sds_secret_configs validation_context validation_context_sds_secret_config combined_validation_context
    alpn_protocols`,
  'transport_sockets.tls.v3.Secret': 'name tls_certificate validation_context session_ticket_keys',
  'config.bootstrap.v3.RuntimeLayer': 'name static_layer:StaticRuntime admin_layer',
  'config.core.v3.SocketAddress': 'protocol=TCP address port_value ipv4_compat',
  'type.tracing.v3.CustomTag': 'tag literal environment request_header metadata',
  'filters.network.http_connection_manager.v3.ResponseMapper': `filter status_code body:Text body_format_override headers_to_add`,
  'config.route.v3.Route': `name match redirect route direct_response metadata decorator typed_per_filter_config non_forwarding_action request_headers_to_add
    request_headers_to_remove response_headers_to_add response_headers_to_remove per_request_buffer_limit_bytes request_body_buffer_limit
    stat_prefix tracing`,
  'config.endpoint.v3.LbEndpoint': 'endpoint health_status metadata load_balancing_weight',
  'config.route.v3.RedirectAction': 'https_redirect scheme_redirect=https port_redirect=443|8443 response_code',
  'config.route.v3.RouteAction': `cluster weighted_clusters timeout idle_timeout flush_timeout retry_policy priority upgrade_configs max_stream_duration max_grpc_timeout
    grpc_timeout_offset hash_policy metadata_match host_rewrite_literal auto_host_rewrite rate_limits include_vh_rate_limits cors early_data_policy
    cluster_not_found_response_code append_x_forwarded_host=false`,
  'config.route.v3.DirectResponseAction': 'status body:Text',
  'config.route.v3.Tracing':
    'client_sampling random_sampling overall_sampling custom_tags operation upstream_operation',
  'config.endpoint.v3.Endpoint': 'address additional_addresses health_check_config hostname',
  'config.route.v3.WeightedCluster': 'clusters total_weight runtime_key_prefix use_hash_policy',
  'config.route.v3.RouteAction.UpgradeConfig': 'upgrade_type=websocket enabled',
  'config.core.v3.DataSource': 'inline_string inline_bytes',
  'config.endpoint.v3.Endpoint.AdditionalAddress': 'address',
  'config.route.v3.WeightedCluster.ClusterWeight': `name weight metadata_match request_headers_to_add request_headers_to_remove response_headers_to_add response_headers_to_remove
    typed_per_filter_config host_rewrite_literal`,
  // Limits of connections.
  EnvoyRuntime: 'resource_limits',
  StaticRuntime: `envoy:EnvoyRuntime re2 overload global_downstream_max_connections envoy.reloadable_features.http_reject_path_with_fragment re2.max_program_size.error_level
    re2.max_program_size.warn_level overload.global_downstream_max_connections`,
  'config.accesslog.v3.AccessLog': 'name filter typed_config',
  'config.listener.v3.Filter': 'name typed_config config_discovery',
  'config.core.v3.Http1ProtocolOptions.HeaderKeyFormat': 'proper_case_words stateful_formatter',
  'filters.network.http_connection_manager.v3.RequestIDExtension': 'typed_config',
  'config.cluster.v3.LoadBalancingPolicy': 'policies',
  'config.cluster.v3.LoadBalancingPolicy.Policy': 'typed_extension_config',
  'load_balancing_policies.wrr_locality.v3.WrrLocality': 'endpoint_picking_policy',
  'config.core.v3.SubstitutionFormatString': `text_format text_format_source:FormatText json_format omit_empty_values content_type json_format_options`,
  FormatText: 'inline_string',
  Text: 'inline_string inline_bytes filename environment_variable watched_directory',
  'config.common.mutation_rules.v3.HeaderMutationRules': '* disallow_expression=never',
  'config.core.v3.HeaderValue': 'key value',
  'config.route.v3.RouteMatch': '* headers connect_matcher=never',
  'config.route.v3.HeaderMatcher': '* string_match',
  'type.matcher.v3.StringMatcher': '* custom=never',
};

/** What a field or an extension that is not judged could do, by its name. */
export const possibleHarm: readonly (readonly [RegExp, string])[] = [
  [/\.(?:lua|wasm|golang|ext_proc|dynamic_modules|composite)\./, 'runs code or a service of its own on each request'],
  [
    /header_to_metadata|set_metadata|set_filter_state|json_to_metadata|payload_to_metadata/,
    'writes metadata, such as the decision that the guard reads',
  ],
  [/stats_matcher/, 'leaves out statistics, perhaps those that alerts read'],
  [/upgrade_type/, 'opens a tunnel in which Envoy checks no request'],
  [/path_parameters/, 'chooses the route by a path other than the one that is checked and served'],
  [/rewrite/, 'serves another path or host than the one in the request'],
  [/mirror/, 'sends a copy of each request elsewhere'],
  [/redirect/, 'sends the request or the client to another path'],
  [/cluster_header|cluster_specifier|inline_cluster/, 'lets the request choose where it goes'],
  [/cluster_type|dynamic_forward_proxy|aggregate|lb_subset|subset/, 'reaches addresses under another name'],
  [/formatter|body_format|access_log|tap|otel|open_telemetry/, 'can print headers of the request, the token too'],
  [/internal_address|envoy_internal_address|internal_listener|api_listener|udp/, 'is another way in'],
  [/^(?:filename|environment_variable)$/, 'a format outside this file can print headers of the request, the token too'],
  [/runtime|rtds/, 'changes the behaviour of Envoy while it runs'],
  [/credential|jwt_authn|oauth2|basic_auth|api_key/, 'reads or sets the token of a request'],
  [/matcher|on_demand|scoped|vhds|rds|ecds/, 'chooses routes or filters in a way that the lint does not follow'],
];
